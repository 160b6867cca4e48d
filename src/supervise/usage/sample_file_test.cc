#include "supervise/usage/sample_file.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "base/files/files.h"
#include "base/testing.h"
#include "gtest/gtest.h"

namespace muster::supervise {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);

Sample Numbered(int i) {
  Sample sample{.time = kStart + absl::Seconds(i), .interval = absl::Seconds(1), .attempt = i / 4};
  sample.cpu = Load{.mean = i + 0.5, .peak = i + 1.0};
  sample.memory = Load{.mean = 1 << 20, .peak = 1 << 21};
  return sample;
}

class SampleFileTest : public testing::Test {
 protected:
  void AppendAll(int first, int end) {
    SampleFile file(path_);
    for (int i = first; i < end; ++i) ASSERT_TRUE(file.Append(Numbered(i)).ok());
  }
  std::vector<Sample> Read() { return ReadSampleFile(path_).value_or(std::vector<Sample>()); }

  const base::TempDir temp_;
  const std::string path_ = base::JoinPath(temp_.path(), "worker-0.bin");
};

TEST_F(SampleFileTest, ReadsWhatWasWritten) {
  AppendAll(0, 5);
  const std::vector<Sample> samples = Read();
  ASSERT_EQ(samples.size(), 5);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(samples[i], Numbered(i)) << i;
  EXPECT_FALSE(samples[0].sent.has_value());  // absent is not 0
  EXPECT_EQ(std::filesystem::file_size(path_), kSampleHeaderBytes + 5 * kSampleRecordBytes);
}

TEST_F(SampleFileTest, ContinuesAnExistingFile) {
  AppendAll(0, 3);
  AppendAll(3, 6);
  ASSERT_EQ(Read().size(), 6);
  EXPECT_EQ(Read()[5], Numbered(5));
}

TEST_F(SampleFileTest, IsBoundedAndKeepsThePeak) {
  Sample spike = Numbered(0);
  spike.memory = Load{.mean = 1 << 20, .peak = 1 << 30};
  ASSERT_TRUE(SampleFile(path_).Append(spike).ok());
  AppendAll(1, 5000);
  const std::vector<Sample> samples = Read();
  EXPECT_LE(samples.size(), kMaxSamples);
  EXPECT_GE(samples.size(), kMaxSamples / 2);
  EXPECT_LE(std::filesystem::file_size(path_),
            kSampleHeaderBytes + kMaxSamples * kSampleRecordBytes);
  EXPECT_EQ(samples.back(), Numbered(4999));  // recent samples are not merged
  EXPECT_EQ(samples.front().memory->peak, 1 << 30);
  absl::Duration covered;
  for (const Sample& sample : samples) covered += sample.interval;
  EXPECT_EQ(covered, absl::Seconds(5000));
}

TEST_F(SampleFileTest, ReadsATruncatedFileAsFarAsItGoes) {
  AppendAll(0, 5);
  const auto size = std::filesystem::file_size(path_);
  for (size_t left = size; left-- > 0;) {
    std::filesystem::resize_file(path_, left);
    const auto samples = ReadSampleFile(path_);
    if (left < kSampleHeaderBytes) {
      EXPECT_TRUE(absl::IsDataLoss(samples.status())) << left;
    } else {
      ASSERT_TRUE(samples.ok()) << left;
      EXPECT_EQ(samples->size(), (left - kSampleHeaderBytes) / kSampleRecordBytes) << left;
    }
  }
}

TEST_F(SampleFileTest, AWriterOverwritesAHalfWrittenRecord) {
  AppendAll(0, 3);
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 10);
  AppendAll(3, 5);
  const std::vector<Sample> samples = Read();
  ASSERT_EQ(samples.size(), 4);
  EXPECT_EQ(samples[2], Numbered(3));
}

TEST_F(SampleFileTest, SkipsDamagedSamples) {
  AppendAll(0, 4);
  const std::string intact = *base::ReadFile(path_);
  for (size_t i = kSampleHeaderBytes; i < intact.size(); ++i) {
    std::string damaged = intact;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x40);
    ASSERT_TRUE(base::ReplaceFile(path_, damaged).ok());
    EXPECT_EQ(Read().size(), 3) << "byte " << i;
  }
}

TEST_F(SampleFileTest, RejectsOtherFilesAndReplacesThem) {
  EXPECT_TRUE(absl::IsNotFound(ReadSampleFile(path_).status()));
  ASSERT_TRUE(base::ReplaceFile(path_, std::string(300, 'x')).ok());
  EXPECT_TRUE(absl::IsDataLoss(ReadSampleFile(path_).status()));
  AppendAll(0, 1);
  EXPECT_EQ(Read().size(), 1);
}

TEST_F(SampleFileTest, DoesNotBlockOnAFifo) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_FALSE(ReadSampleFile(path_).ok());
  EXPECT_FALSE(SampleFile(path_).Append(Numbered(0)).ok());
}

TEST_F(SampleFileTest, StartsAgainWhenTheFileWasRemoved) {
  SampleFile file(path_);
  ASSERT_TRUE(file.Append(Numbered(0)).ok());
  std::filesystem::remove(path_);
  EXPECT_FALSE(file.Append(Numbered(1)).ok());
  EXPECT_TRUE(file.Append(Numbered(2)).ok());
  EXPECT_EQ(Read(), std::vector<Sample>{Numbered(2)});
}

// A limit on the size of files stands in for a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST_F(SampleFileTest, AFullDiskLosesOnlyTheSamplesOfThatTime) {
  SampleFile file(path_);
  ASSERT_TRUE(file.Append(Numbered(0)).ok());
  {
    const FullDisk disk(kSampleHeaderBytes + kSampleRecordBytes + 20);
    EXPECT_TRUE(absl::IsResourceExhausted(file.Append(Numbered(1))));
    EXPECT_TRUE(absl::IsResourceExhausted(file.Append(Numbered(2))));
  }
  ASSERT_TRUE(file.Append(Numbered(3)).ok());
  EXPECT_EQ(Read(), (std::vector<Sample>{Numbered(0), Numbered(3)}));
}

TEST_F(SampleFileTest, AFullDiskDoesNotDamageAFullFile) {
  AppendAll(0, kMaxSamples);
  SampleFile file(path_);
  {
    const FullDisk disk(1000);
    EXPECT_FALSE(file.Append(Numbered(kMaxSamples)).ok());
  }
  EXPECT_EQ(Read().size(), kMaxSamples);
  EXPECT_TRUE(file.Append(Numbered(kMaxSamples)).ok());
  EXPECT_EQ(Read().back(), Numbered(kMaxSamples));
}

}  // namespace
}  // namespace muster::supervise
