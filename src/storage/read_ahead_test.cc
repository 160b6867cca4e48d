#include "storage/read_ahead.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::storage {
namespace {

using testing::HasSubstr;

constexpr size_t kRange = 10;

// A file in memory that can block reads, and records them.
class SlowReader final : public Reader {
 public:
  explicit SlowReader(size_t bytes) : size_(static_cast<int64_t>(bytes)) {
    for (size_t i = 0; i < bytes; ++i) content.push_back(static_cast<char>(i * 7));
  }

  int64_t size() const override { return size_; }

  absl::StatusOr<size_t> Read(int64_t offset, absl::Span<char> buffer) override {
    absl::MutexLock lock(&mutex_);
    begun_.push_back(offset);
    ++under_way_;
    most_ = std::max(most_, under_way_);
    const auto free = [this, offset] {
      mutex_.AssertReaderHeld();
      return held_.count(offset) == 0;
    };
    mutex_.Await(absl::Condition(&free));
    --under_way_;
    if (offset == fails_at) return absl::UnavailableError("lost");
    if (offset >= static_cast<int64_t>(content.size())) return 0;
    return content.copy(buffer.data(), buffer.size(), static_cast<size_t>(offset));
  }

  // Blocks reads at this offset from now on.
  void Hold(int64_t offset) {
    absl::MutexLock lock(&mutex_);
    held_.insert(offset);
  }
  void Free(int64_t offset) {
    absl::MutexLock lock(&mutex_);
    held_.erase(offset);
  }
  // Waits until `count` reads have begun.
  std::vector<int64_t> WaitForBegun(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto enough = [this, count] {
      mutex_.AssertReaderHeld();
      return begun_.size() >= count;
    };
    mutex_.Await(absl::Condition(&enough));
    return begun_;
  }
  int most() {
    absl::MutexLock lock(&mutex_);
    return most_;
  }
  size_t begun() {
    absl::MutexLock lock(&mutex_);
    return begun_.size();
  }

  std::string content;
  int64_t fails_at = -1;

 private:
  const int64_t size_;
  absl::Mutex mutex_;
  std::set<int64_t> held_ ABSL_GUARDED_BY(mutex_);
  std::vector<int64_t> begun_ ABSL_GUARDED_BY(mutex_);
  int under_way_ ABSL_GUARDED_BY(mutex_) = 0;
  int most_ ABSL_GUARDED_BY(mutex_) = 0;
};

const Url kUrl = {"s3", "bucket", "name"};

// Returns the whole content, followed by "!" and the error, if any.
std::string All(ReadAhead& ahead) {
  std::string all;
  for (;;) {
    const auto bytes = ahead.Next();
    if (!bytes.ok()) return absl::StrCat(all, "!", bytes.status().message());
    if (bytes->empty()) return all;
    all.append(bytes->data(), bytes->size());
  }
}

TEST(ReadAheadTest, FilesOfEverySize) {
  for (const size_t size : {0, 1, 9, 10, 11, 29, 30, 31, 1000}) {
    for (const int parallel : {-1, 1, 2, 3, 50}) {
      SlowReader reader(size);
      ReadAhead ahead(reader, kUrl, {.range_bytes = kRange, .parallel = parallel});
      EXPECT_EQ(All(ahead), reader.content) << size << " " << parallel;
      EXPECT_EQ(*ahead.Next(), "");
    }
  }
}

TEST(ReadAheadTest, ReturnsRangesInOrder) {
  SlowReader reader(100);
  reader.Hold(0);
  reader.Hold(40);
  ReadAhead ahead(reader, kUrl, {.range_bytes = kRange, .parallel = 4});
  reader.WaitForBegun(4);
  reader.Free(0);
  const auto first = ahead.Next();
  EXPECT_EQ(*first, reader.content.substr(0, 10));
  EXPECT_EQ(*ahead.Next(), reader.content.substr(10, 10));
  EXPECT_EQ(*ahead.Next(), reader.content.substr(20, 10));
  reader.WaitForBegun(6);  // the one at 40 blocks
  EXPECT_EQ(*ahead.Next(), reader.content.substr(30, 10));
  reader.Free(40);
  EXPECT_EQ(All(ahead), reader.content.substr(40));
}

TEST(ReadAheadTest, LimitsTheRangesInFlight) {
  SlowReader reader(1000);
  ReadAhead ahead(reader, kUrl, {.range_bytes = kRange, .parallel = 3});
  for (size_t taken = 1; !(*ahead.Next()).empty() && taken <= 100; ++taken) {
    // The range in use counts, too.
    EXPECT_LE(reader.begun(), taken - 1 + 3);
  }
  EXPECT_LE(reader.most(), 3);
}

TEST(ReadAheadTest, FetchesRangesInParallel) {
  SlowReader reader(1000);
  for (const int64_t offset : {0, 10, 20}) reader.Hold(offset);
  ReadAhead ahead(reader, kUrl, {.range_bytes = kRange, .parallel = 3});
  reader.WaitForBegun(3);
  EXPECT_EQ(reader.most(), 3);
  for (const int64_t offset : {0, 10, 20}) reader.Free(offset);
  EXPECT_EQ(All(ahead), reader.content);
}

TEST(ReadAheadTest, ReturnsAnErrorInPlaceOfItsRange) {
  for (const int parallel : {1, 2, 4}) {
    SlowReader reader(1000);
    reader.fails_at = 30;
    ReadAhead ahead(reader, kUrl, {.range_bytes = kRange, .parallel = parallel});
    EXPECT_EQ(All(ahead), reader.content.substr(0, 30) + "!lost");
    EXPECT_TRUE(absl::IsUnavailable(ahead.Next().status()));
    EXPECT_LE(reader.begun(), 3u + static_cast<size_t>(parallel));
  }
}

TEST(ReadAheadTest, DestroyedInTheMiddle) {
  SlowReader reader(1000);
  for (int64_t offset = 10; offset < 1000; offset += 10) reader.Hold(offset);
  absl::Notification ended;
  std::jthread other;
  {
    ReadAhead ahead(reader, kUrl, {.range_bytes = kRange, .parallel = 4});
    EXPECT_EQ(ahead.Next()->size(), kRange);
    reader.WaitForBegun(4);
    other = std::jthread([&] {
      EXPECT_FALSE(ended.HasBeenNotified());
      for (int64_t offset = 10; offset < 1000; offset += 10) reader.Free(offset);
    });
  }
  ended.Notify();
  const size_t begun = reader.begun();
  other.join();
  EXPECT_EQ(reader.begun(), begun);
  EXPECT_LT(begun, 100u);
}

TEST(ReadAheadTest, DestroyedImmediately) {
  for (int i = 0; i < 100; ++i) {
    SlowReader reader(100);
    const ReadAhead ahead(reader, kUrl, {.range_bytes = kRange, .parallel = 4});
  }
}

TEST(ReadAheadTest, AGrownFileIsReadToItsEnd) {
  SlowReader reader(25);
  reader.content += std::string(100, 'x');
  ReadAhead ahead(reader, kUrl, {.range_bytes = kRange, .parallel = 2});
  EXPECT_EQ(All(ahead), reader.content);
}

TEST(ReadAheadTest, AShortenedFileIsAborted) {
  SlowReader reader(100);
  reader.content.resize(35);
  ReadAhead ahead(reader, kUrl, {.range_bytes = kRange, .parallel = 4});
  const std::string all = All(ahead);
  EXPECT_EQ(all.substr(0, 30), reader.content.substr(0, 30));
  EXPECT_THAT(all.substr(30), HasSubstr("!s3://bucket/name: was truncated"));
}

}  // namespace
}  // namespace muster::storage
