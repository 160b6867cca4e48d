#include "data/input/stream.h"

#include <algorithm>
#include <map>
#include <vector>

#include "data/input/permutation.h"
#include "data/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::data {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<BatchStream> Train(int64_t size, const StreamOptions& options) {
  auto stream = TrainStream(std::make_shared<CountingDataset>(size), options);
  EXPECT_TRUE(stream.ok()) << stream.status();
  return *std::move(stream);
}

std::vector<std::vector<int64_t>> Take(BatchStream& stream, int count) {
  std::vector<std::vector<int64_t>> batches;
  for (int i = 0; i < count; ++i) batches.push_back(TargetsOf(stream.Next().value()));
  return batches;
}

TEST(TrainStreamTest, BatchesDependOnNeitherThreadsNorPrefetch) {
  const StreamOptions plain{
      .batch_size = 7, .rank = 1, .world = 3, .seed = 5, .base = 11, .prefetch = 0};
  const auto expected = Take(*Train(50, plain), 40);
  for (const int prefetch : {1, 2, 9}) {
    for (const int threads : {1, 4}) {
      StreamOptions options = plain;
      options.prefetch = prefetch;
      options.threads = threads;
      EXPECT_EQ(Take(*Train(50, options), 40), expected);
    }
  }
}

TEST(TrainStreamTest, APositionIsAnExample) {
  const StreamOptions options{.batch_size = 8, .rank = 2, .world = 3, .seed = 9, .base = 5};
  const auto stream = Train(20, options);
  for (int64_t k = 0; k < 10; ++k) {
    const Batch batch = stream->Next().value();
    EXPECT_EQ(batch.position, 5 + (k * 3 + 2) * 8);
    EXPECT_EQ(batch.size, 8);
    std::vector<int64_t> expected;
    for (int64_t p = batch.position; p < batch.position + 8; ++p) {
      expected.push_back(Permutation(20, 9, static_cast<uint64_t>(p / 20))(p % 20));
    }
    EXPECT_EQ(TargetsOf(batch), expected);
  }
}

TEST(TrainStreamTest, SeekIsExact) {
  const StreamOptions options{.batch_size = 6, .rank = 1, .world = 2, .seed = 1, .threads = 2};
  const auto expected = Take(*Train(32, options), 30);
  const auto stream = Train(32, options);
  for (const int start : {29, 0, 13, 14, 3}) {
    ASSERT_TRUE(stream->Seek(start).ok());
    EXPECT_EQ(TargetsOf(stream->Next().value()), expected[static_cast<size_t>(start)]);
  }
}

// A job that resumes with another number of tasks starts where the earlier tasks stopped.
TEST(TrainStreamTest, AnotherWorldSizeResumesAtTheBase) {
  const auto one = Train(1000, {.batch_size = 10, .seed = 4});
  ASSERT_TRUE(one->Seek(6).ok());
  const auto expected = Take(*one, 4);
  std::vector<std::vector<int64_t>> seen;
  for (int k = 0; k < 2; ++k) {
    for (int rank = 0; rank < 2; ++rank) {
      const auto stream =
          Train(1000, {.batch_size = 10, .rank = rank, .world = 2, .seed = 4, .base = 60});
      ASSERT_TRUE(stream->Seek(k).ok());
      seen.push_back(TargetsOf(stream->Next().value()));
    }
  }
  EXPECT_EQ(seen, expected);
}

TEST(TrainStreamTest, AnEpochOfAllRanksIsEachExampleOnce) {
  constexpr int64_t kSize = 60;
  constexpr int kWorld = 3;
  std::map<int64_t, std::vector<int>> counts;  // epoch to how often each example was seen
  for (int rank = 0; rank < kWorld; ++rank) {
    const auto stream = Train(kSize, {.batch_size = 8, .rank = rank, .world = kWorld, .seed = 2});
    for (int k = 0; k < 15; ++k) {  // 3 * 15 batches of 8 are 6 epochs
      const Batch batch = stream->Next().value();
      for (int64_t i = 0; i < batch.size; ++i) {
        auto& epoch = counts[(batch.position + i) / kSize];
        epoch.resize(kSize);
        ++epoch[static_cast<size_t>(batch.targets.as<int64_t>()[i])];
      }
    }
  }
  ASSERT_EQ(counts.size(), 6u);
  for (const auto& [epoch, seen] : counts) EXPECT_THAT(seen, Each(1)) << epoch;
}

TEST(TrainStreamTest, WithoutShufflingTheOrderIsTheDataSets) {
  const auto stream = Train(5, {.batch_size = 3, .shuffle = false});
  EXPECT_THAT(Take(*stream, 4), ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 0),
                                            ElementsAre(1, 2, 3), ElementsAre(4, 0, 1)));
}

TEST(TrainStreamTest, ABatchMayBeTheWholeDataSetButNotMore) {
  EXPECT_EQ(Take(*Train(5, {.batch_size = 5}), 1)[0].size(), 5u);
  const auto larger = TrainStream(std::make_shared<CountingDataset>(5), {.batch_size = 6});
  EXPECT_EQ(larger.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(larger.status().message(),
            "'batch_size' is 6, but the data set has only 5 examples; set 'batch_size' to at most "
            "5, or use more data");
}

TEST(TrainStreamTest, InvalidOptionsAreRejected) {
  const auto data = std::make_shared<CountingDataset>(5);
  const auto refused = [&](const StreamOptions& options) {
    return TrainStream(data, options).status().code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused({.batch_size = 0}));
  EXPECT_TRUE(refused({.batch_size = 1, .rank = 2, .world = 2}));
  EXPECT_TRUE(refused({.batch_size = 1, .rank = -1}));
  EXPECT_TRUE(refused({.batch_size = 1, .world = 0}));
  EXPECT_TRUE(refused({.batch_size = 1, .base = -1}));
  EXPECT_TRUE(refused({.batch_size = 1, .prefetch = -1}));
  EXPECT_TRUE(refused({.batch_size = 1, .threads = 0}));
  EXPECT_THAT(TrainStream(std::make_shared<CountingDataset>(0), {}).status().message(),
              HasSubstr("the data set is empty"));
  EXPECT_FALSE(TrainStream(nullptr, {}).ok());
}

TEST(TrainStreamTest, OverflowingPositionsAreRejected) {
  const auto stream = Train(5, {.batch_size = 5, .world = 1000});
  ASSERT_TRUE(stream->Seek(INT64_MAX / 2).ok());
  EXPECT_EQ(stream->Next().status().code(), absl::StatusCode::kOutOfRange);
}

TEST(TrainStreamTest, ReturnsADataErrorInOrder) {
  const auto stream = TrainStream(std::make_shared<CountingDataset>(10, /*broken=*/6),
                                  {.batch_size = 2, .shuffle = false, .threads = 3});
  EXPECT_EQ(Take(**stream, 3).size(), 3u);
  EXPECT_EQ((*stream)->Next().status().message(), "the example is broken");
}

TEST(TrainStreamTest, BatchesAreAlignedAndOutliveTheStream) {
  std::vector<Batch> batches;
  {
    const auto stream = Train(100, {.batch_size = 3, .shuffle = false});
    for (int i = 0; i < 5; ++i) batches.push_back(stream->Next().value());
  }
  for (const Batch& batch : batches) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(batch.inputs.data()) % 64, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(batch.targets.data()) % 64, 0u);
    EXPECT_EQ(TargetsOf(batch)[0], batch.position);
    EXPECT_EQ(batch.inputs.shape, (base::Shape{3, 1}));
    EXPECT_EQ(batch.inputs.bytes(), 12);
  }
}

TEST(EvalStreamTest, OnePassInOrder) {
  for (const int prefetch : {0, 1, 4}) {
    const auto stream = EvalStream(std::make_shared<CountingDataset>(7), 3, prefetch);
    ASSERT_TRUE(stream.ok());
    for (int pass = 0; pass < 2; ++pass) {
      EXPECT_THAT(Take(**stream, 3),
                  ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5), ElementsAre(6)));
      EXPECT_EQ((*stream)->Next().status().code(), absl::StatusCode::kOutOfRange);
      EXPECT_EQ((*stream)->Next().status().code(), absl::StatusCode::kOutOfRange);
      ASSERT_TRUE((*stream)->Seek(0).ok());
    }
  }
}

TEST(EvalStreamTest, ALargeBatchHoldsAllExamples) {
  const auto stream = EvalStream(std::make_shared<CountingDataset>(7), INT64_MAX, 2);
  EXPECT_EQ((*stream)->Next()->size, 7);
  EXPECT_FALSE(EvalStream(std::make_shared<CountingDataset>(0), 1, 1).ok());
  EXPECT_FALSE(EvalStream(std::make_shared<CountingDataset>(1), 0, 1).ok());
}

}  // namespace
}  // namespace muster::data
