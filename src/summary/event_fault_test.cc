// Event files that are cut, damaged or cannot be written.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>

#include "base/bytes/record.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "summary/event_reader.h"
#include "summary/event_writer.h"

namespace muster::summary {
namespace {

using ::testing::HasSubstr;

class EventFaultTest : public testing::Test {
 protected:
  struct Outcome {
    int events = 0;
    absl::Status status;
  };

  Outcome Read(absl::string_view content) {
    const std::string path = directory_.path() + "/read.tfevents.1";
    EXPECT_TRUE(base::ReplaceFile(path, content).ok());
    auto reader = EventReader::Open(path);
    EXPECT_TRUE(reader.ok()) << reader.status();
    Outcome outcome;
    for (;;) {
      const auto event = reader->Next();
      if (!event.ok()) outcome.status = event.status();
      if (!event.ok() || !event->has_value()) break;
      ++outcome.events;
    }
    // A later call returns the same error.
    EXPECT_EQ(reader->Next().status(), outcome.status);
    return outcome;
  }

  // A version, three scalars and a histogram; ends_ receives the ends of the records.
  std::string MakeFile() {
    auto writer = *EventWriter::Open(directory_.path(), "x", clock_);
    const auto mark = [&] {
      EXPECT_TRUE(writer->Flush().ok());
      ends_.push_back(base::ReadFile(writer->path())->size());
    };
    mark();
    for (int step = 1; step <= 3; ++step) {
      writer->Scalar("loss", step, 0.5);
      mark();
    }
    const float values[] = {1, 2, 3};
    writer->Histogram("weights", 3, values);
    mark();
    return *base::ReadFile(writer->path());
  }

  base::TempDir directory_;
  base::FakeClock clock_;
  std::vector<size_t> ends_;
};

TEST_F(EventFaultTest, TruncatedFileIsReadUpToItsLastCompleteRecord) {
  const std::string file = MakeFile();
  for (size_t size = 0; size <= file.size(); ++size) {
    const Outcome outcome = Read(absl::string_view(file).substr(0, size));
    EXPECT_TRUE(outcome.status.ok()) << size << outcome.status;
    EXPECT_EQ(outcome.events,
              std::count_if(ends_.begin(), ends_.end(), [size](size_t end) { return end <= size; }))
        << size;
  }
}

TEST_F(EventFaultTest, FlippedBitIsReportedWithItsRecord) {
  const std::string file = MakeFile();
  for (size_t byte = 0; byte < file.size(); ++byte) {
    std::string damaged = file;
    damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << (byte % 8)));
    const Outcome outcome = Read(damaged);
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), byte);
    EXPECT_EQ(outcome.events, end - ends_.begin()) << byte;
    EXPECT_EQ(outcome.status.code(), absl::StatusCode::kDataLoss) << byte;
    const size_t begin = end == ends_.begin() ? 0 : *(end - 1);
    EXPECT_THAT(std::string(outcome.status.message()),
                HasSubstr("record at byte " + std::to_string(begin) + ":"));
  }
}

TEST_F(EventFaultTest, AnEmptyFileHasNoEvents) {
  const Outcome outcome = Read("");
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_EQ(outcome.events, 0);
}

TEST_F(EventFaultTest, TrailingZerosAreDamage) {
  // A file system may leave such a file after a power failure.
  const Outcome outcome = Read(MakeFile() + std::string(4096, '\0'));
  EXPECT_EQ(outcome.status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(outcome.events, 5);
}

TEST_F(EventFaultTest, HugeLengthWithAValidChecksumIsDamage) {
  // A length of 2^56.
  const std::string header("\x00\x00\x00\x00\x00\x00\x00\x01", 8);
  for (const absl::string_view tail : {"", "some more bytes that follow it"}) {
    std::string file;
    base::AppendRecord(header, file);  // its footer is the checksum of those eight bytes
    const std::string check = file.substr(file.size() - 4);
    const Outcome outcome = Read(header + check + std::string(tail));
    EXPECT_EQ(outcome.status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(outcome.status.message()), HasSubstr("exceeds the limit"));
  }
}

TEST_F(EventFaultTest, RecordsThatAreNotEventsAreDamage) {
  std::string file;
  base::AppendRecord("\xff\xff\xff\xff not a message", file);
  EXPECT_EQ(Read(file).status.code(), absl::StatusCode::kDataLoss);
}

TEST_F(EventFaultTest, UnknownFieldsAreSkipped) {
  // Field 9, meta_graph_def, and in a summary a value of kind 4, an image.
  std::string file;
  base::AppendRecord(std::string("\x4a\x03xyz", 5), file);
  base::AppendRecord(std::string("\x2a\x07\x0a\x05\x0a\x01t\x22\x00", 9), file);
  const Outcome outcome = Read(file);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.events, 2);
}

TEST_F(EventFaultTest, AFullDiskIsReportedAndTheFileStaysReadable) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    auto writer = *EventWriter::Open(directory_.path(), "full", clock_);
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    const rlimit small{.rlim_cur = 1000, .rlim_max = limit.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
    for (int step = 0; step < 100; ++step) writer->Scalar("loss", step, 1);
    const absl::Status first = writer->Flush();
    EXPECT_FALSE(first.ok());
    EXPECT_THAT(std::string(first.message()), HasSubstr(writer->path()));
    ::setrlimit(RLIMIT_FSIZE, &limit);
    for (int step = 0; step < 100'000; ++step) writer->Scalar("loss", step, 1);
    EXPECT_EQ(writer->Flush(), first);
    const std::string content = *base::ReadFile(writer->path());
    EXPECT_EQ(content.size(), 1000U);
    const Outcome outcome = Read(content);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_GT(outcome.events, 10);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

TEST_F(EventFaultTest, OpenFailsOnAFullDisk) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit none{.rlim_cur = 0, .rlim_max = 0};
    ::setrlimit(RLIMIT_FSIZE, &none);
    ::_exit(EventWriter::Open(directory_.path(), "full", clock_).ok() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

TEST_F(EventFaultTest, ErrorNamesTheFolderThatCannotBeCreated) {
  const std::string file = directory_.path() + "/file";
  ASSERT_TRUE(base::ReplaceFile(file, "x").ok());
  const auto writer = EventWriter::Open(file + "/run", "x", clock_);
  EXPECT_THAT(std::string(writer.status().message()), HasSubstr(file));
}

TEST_F(EventFaultTest, AMissingFileIsNotFound) {
  EXPECT_EQ(EventReader::Open(directory_.path() + "/missing").status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace muster::summary
