#include "data/input/prefetch.h"

#include <atomic>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::data {
namespace {

absl::StatusOr<Batch> Numbered(int64_t sequence) {
  Batch batch;
  batch.position = sequence;
  return batch;
}

TEST(PrefetcherTest, ReturnsBatchesInOrder) {
  for (const int threads : {1, 2, 8}) {
    for (const int depth : {0, 1, 3, 16}) {
      Prefetcher prefetcher(Numbered, depth, threads);
      for (int64_t i = 0; i < 200; ++i) EXPECT_EQ(prefetcher.Next()->position, i);
    }
  }
}

TEST(PrefetcherTest, SeeksToAnyPosition) {
  for (const int depth : {0, 1, 4}) {
    Prefetcher prefetcher(Numbered, depth, 3);
    for (const int64_t target : {5, 0, 1000, 999, 3, 3, 7}) {
      ASSERT_TRUE(prefetcher.Seek(target).ok());
      for (int64_t i = 0; i < 10; ++i) EXPECT_EQ(prefetcher.Next()->position, target + i);
    }
    EXPECT_EQ(prefetcher.Seek(-1).code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(PrefetcherTest, PrefetchesAtMostTheDepth) {
  std::atomic<int> made = 0;
  absl::Mutex mutex;
  int64_t highest = -1;
  Prefetcher prefetcher(
      [&](int64_t sequence) -> absl::StatusOr<Batch> {
        ++made;
        absl::MutexLock lock(&mutex);
        highest = std::max(highest, sequence);
        return Numbered(sequence);
      },
      4, 2);
  for (int64_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(prefetcher.Next().ok());
    absl::MutexLock lock(&mutex);
    EXPECT_LE(highest, i + 4);
  }
  EXPECT_LE(made, 104);
}

TEST(PrefetcherTest, ReturnsAnErrorInOrderUntilSeek) {
  for (const int depth : {0, 1, 5}) {
    std::atomic<bool> broken = true;
    Prefetcher prefetcher(
        [&](int64_t sequence) -> absl::StatusOr<Batch> {
          if (sequence == 3 && broken) return absl::DataLossError("three");
          return Numbered(sequence);
        },
        depth, 2);
    for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(prefetcher.Next()->position, i);
    EXPECT_EQ(prefetcher.Next().status().message(), "three");
    EXPECT_EQ(prefetcher.Next().status().message(), "three");
    broken = false;
    ASSERT_TRUE(prefetcher.Seek(3).ok());
    EXPECT_EQ(prefetcher.Next()->position, 3);
  }
}

TEST(PrefetcherTest, OutOfMemoryIsAnError) {
  for (const int depth : {0, 2}) {
    Prefetcher prefetcher([](int64_t) -> absl::StatusOr<Batch> { throw std::bad_alloc(); }, depth,
                          1);
    EXPECT_EQ(prefetcher.Next().status().code(), absl::StatusCode::kResourceExhausted);
  }
}

TEST(PrefetcherTest, DestructionDoesNotWaitForQueuedBatches) {
  absl::Notification begun;
  absl::Notification go;
  std::atomic<int> made = 0;
  std::jthread opener([&] {
    begun.WaitForNotification();
    go.Notify();
  });
  {
    Prefetcher prefetcher(
        [&](int64_t sequence) {
          if (made++ == 0) begun.Notify();
          go.WaitForNotification();
          return Numbered(sequence);
        },
        100, 1);
    begun.WaitForNotification();
  }
  EXPECT_LE(made, 100);
}

TEST(PrefetcherTest, ManyPrefetchersStartAndStop) {
  for (int i = 0; i < 200; ++i) {
    Prefetcher prefetcher(Numbered, 4, 2);
    if (i % 2 == 0) {
      EXPECT_EQ(prefetcher.Next()->position, 0);
    }
  }
}

}  // namespace
}  // namespace muster::data
