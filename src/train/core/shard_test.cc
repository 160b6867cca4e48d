#include "train/core/shard.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::train {
namespace {

using Kind = Variable::Kind;
using testing::ElementsAre;

constexpr OptimizerConfig kAdam = {.kind = OptimizerConfig::Kind::kAdam, .learning_rate = 0.1};
constexpr float kHalf = 0.5F;

ShardShape Shape() {
  const std::vector<Variable> variables = {
      {{"a", base::DType::kFloat32, {100, 7}}, Kind::kDense},
      {{"b", base::DType::kFloat32, {33}}, Kind::kDense},
      {{"t", base::DType::kFloat32, {20, 3}}, Kind::kTable},
      {{"u", base::DType::kFloat32, {5, 2}}, Kind::kTable},
      {{"m", base::DType::kFloat32, {4}}, Kind::kBuffer},
  };
  return Place(variables, 1, 1000)[0].shape;
}

absl::Span<float> Floats(absl::Span<std::byte> bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

std::vector<float> Noise(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(n);
  for (float& value : values) value = uniform(random);
  return values;
}

class ShardTest : public testing::TestWithParam<bool> {
 protected:
  ShardTest()
      : shard_(Shape(), {.optimizer = kAdam,
                         .schedule = *Schedule::FromJson(nullptr, kAdam.learning_rate, 1000),
                         .version = 7,
                         .keep_previous = GetParam()}) {
    uint32_t seed = 1;
    for (const Area area : {Area::kValues, Area::kSlot0, Area::kSlot1, Area::kTables,
                            Area::kTableSlot0, Area::kTableSlot1}) {
      const absl::Span<float> memory = Floats(shard_.Assign(area));
      std::vector<float> values = Noise(memory.size(), seed++);
      const bool is_slot = area != Area::kValues && area != Area::kTables;
      for (float& value : values) value = is_slot ? std::abs(value) : value;
      std::copy(values.begin(), values.end(), memory.begin());
      first_.push_back(std::move(values));
    }
    const absl::Span<std::byte> buffers = shard_.Assign(Area::kBuffers);
    std::fill(buffers.begin(), buffers.end(), std::byte{1});
    shard_.Activate();
  }

  int buckets() const { return static_cast<int>(shard_.shape().buckets.size()); }
  int64_t elements(int bucket) const { return shard_.shape().buckets[bucket].elements; }
  std::vector<float> Values(int bucket, int64_t version) const {
    const float* values = shard_.Values(bucket, version);
    return {values, values + elements(bucket)};
  }
  std::vector<float> Row(int table, int64_t version, int64_t row) const {
    std::vector<float> out(static_cast<size_t>(shard_.shape().tables[table].width));
    shard_.ReadRows(table, version, {row}, out.data());
    return out;
  }
  void ApplyNoise(int bucket, uint32_t seed) {
    const std::vector<float> gradient = Noise(static_cast<size_t>(elements(bucket)), seed);
    FlatGradient flat(gradient.data());
    shard_.Apply(bucket, {&flat}, 1);
  }

  Shard shard_;
  std::vector<std::vector<float>> first_;  // values, slots, tables, their slots
};
INSTANTIATE_TEST_SUITE_P(KeepPrevious, ShardTest, testing::Bool());

TEST_P(ShardTest, UpdatesAsTheOptimizerDoes) {
  ASSERT_GT(buckets(), 2);
  std::vector<float> values = first_[0];
  std::vector<float> slot0 = first_[1];
  std::vector<float> slot1 = first_[2];
  for (int64_t step = 8; step < 12; ++step) {
    for (int bucket = 0; bucket < buckets(); ++bucket) {
      const auto n = static_cast<size_t>(elements(bucket));
      const int64_t offset = shard_.shape().buckets[bucket].offset;
      const std::vector<float> one = Noise(n, static_cast<uint32_t>(step * 10 + bucket));
      const std::vector<float> two = Noise(n, static_cast<uint32_t>(step * 10 + bucket + 5));
      FlatGradient first(one.data());
      FlatGradient second(two.data());
      shard_.Apply(bucket, {&first, &second}, kHalf);
      float* const slots[kMaxSlots] = {slot0.data() + offset, slot1.data() + offset};
      Apply(kAdam, {kAdam.learning_rate, step, kHalf}, {one.data(), two.data()},
            values.data() + offset, values.data() + offset, slots, elements(bucket));
      EXPECT_EQ(shard_.version(bucket), step);
      EXPECT_EQ(std::memcmp(shard_.Values(bucket, step), values.data() + offset, 4 * n), 0);
    }
  }
}

TEST_P(ShardTest, WithoutGradientsOnlyTheVersionChanges) {
  const std::vector<float> before = Values(1, 7);
  shard_.Apply(1, {}, 1);
  EXPECT_EQ(shard_.version(1), 8);
  EXPECT_EQ(Values(1, 8), before);
  shard_.Apply(1, {}, 1);
  EXPECT_EQ(Values(1, 9), before);
}

TEST_P(ShardTest, RowsAreAddedInTheOrderOfTheTasks) {
  const std::vector<int64_t> rows[] = {{1, 5, 19}, {0, 5}, {5, 1}};
  std::vector<float> gradients[3];
  std::vector<RowGradients> tasks;
  for (int i = 0; i < 3; ++i) {
    gradients[i] = Noise(rows[i].size() * 3, static_cast<uint32_t>(i));
    tasks.push_back({rows[i], gradients[i].data()});
  }
  std::vector<float> values(first_[3].begin(), first_[3].begin() + 60);
  std::vector<float> slot0(first_[4].begin(), first_[4].begin() + 60);
  std::vector<float> slot1(first_[5].begin(), first_[5].begin() + 60);
  ASSERT_EQ(shard_.shape().tables[1].rows, 20);
  const int table = 1;  // the later variable comes first
  const int64_t offset = shard_.shape().tables[table].offset;
  for (int i = 0; i < 60; ++i) {
    values[i] = first_[3][offset + i];
    slot0[i] = first_[4][offset + i];
    slot1[i] = first_[5][offset + i];
  }
  shard_.ApplyRows(table, tasks, 1.0F / 3);
  std::vector<float> sums;
  for (int i = 0; i < 3; ++i) sums.push_back(gradients[1][i]);                        // row 0
  for (int i = 0; i < 3; ++i) sums.push_back(gradients[0][i] + gradients[2][3 + i]);  // row 1
  for (int i = 0; i < 3; ++i) {
    sums.push_back(gradients[0][3 + i] + gradients[1][3 + i] + gradients[2][i]);  // row 5
  }
  for (int i = 0; i < 3; ++i) sums.push_back(gradients[0][6 + i]);  // row 19
  float* const slots[kMaxSlots] = {slot0.data(), slot1.data()};
  ApplyRows(kAdam, {kAdam.learning_rate, 8, 1.0F / 3}, sums.data(), {0, 1, 5, 19}, 3, values.data(),
            slots);
  for (int64_t row = 0; row < 20; ++row) {
    EXPECT_EQ(Row(table, 8, row),
              std::vector<float>(values.begin() + row * 3, values.begin() + row * 3 + 3))
        << row;
  }
}

TEST_P(ShardTest, RowsOutOfRangeAreRejected) {
  EXPECT_TRUE(shard_.CheckRows(1, {0, 19}).ok());
  EXPECT_TRUE(shard_.CheckRows(1, {}).ok());
  EXPECT_FALSE(shard_.CheckRows(1, {0, 20}).ok());
  EXPECT_FALSE(shard_.CheckRows(1, {-1}).ok());
}

TEST_P(ShardTest, ASnapshotIsTheStateAtItsBeginning) {
  for (int round = 0; round < 5; ++round) {
    std::vector<std::vector<float>> before;
    for (int bucket = 0; bucket < buckets(); ++bucket) {
      before.push_back(Values(bucket, shard_.version(bucket)));
    }
    std::vector<float> row_before;
    for (int64_t row = 0; row < 20; ++row) {
      for (const float value : Row(1, shard_.version(shard_.shape().table_bucket(1)), row)) {
        row_before.push_back(value);
      }
    }
    const auto slots = Floats(shard_.Assign(Area::kSlot1));
    const std::vector<float> slots_before(slots.begin(), slots.end());
    const auto table_slots = Floats(shard_.Assign(Area::kTableSlot0));
    const std::vector<float> table_slots_before(table_slots.begin(), table_slots.end());
    const std::vector<std::byte> buffers_before = shard_.Buffers(1000);

    shard_.BeginSnapshot();
    std::vector<std::jthread> threads;
    for (int bucket = 0; bucket < buckets(); ++bucket) {
      threads.emplace_back([this, bucket] {
        for (uint32_t i = 0; i < 50; ++i) ApplyNoise(bucket, i);
      });
    }
    threads.emplace_back([this, round] {
      const std::vector<int64_t> some = {2, 3, 11};
      const std::vector<float> gradient = Noise(9, 4);
      const std::vector<std::byte> bytes(16, static_cast<std::byte>(round + 2));
      for (int i = 0; i < 50; ++i) shard_.ApplyRows(1, {{some, gradient.data()}}, 1);
      shard_.SetBuffers(bytes);
    });
    shard_.FinishSnapshot();
    const auto copy = [&](Area area) {
      const auto bytes = shard_.Snapshot(area);
      std::vector<float> floats(bytes.size() / 4);
      std::memcpy(floats.data(), bytes.data(), bytes.size());
      return floats;
    };
    for (int bucket = 0; bucket < buckets(); ++bucket) {
      const std::vector<float> values = copy(Area::kValues);
      const auto from = values.begin() + shard_.shape().buckets[bucket].offset;
      EXPECT_TRUE(std::equal(before[bucket].begin(), before[bucket].end(), from));
    }
    EXPECT_EQ(copy(Area::kSlot1), slots_before);
    EXPECT_EQ(copy(Area::kTableSlot0), table_slots_before);
    const std::vector<float> tables = copy(Area::kTables);
    EXPECT_TRUE(std::equal(row_before.begin(), row_before.end(),
                           tables.begin() + shard_.shape().tables[1].offset));
    const auto buffers = shard_.Snapshot(Area::kBuffers);
    EXPECT_EQ(std::vector<std::byte>(buffers.begin(), buffers.end()), buffers_before);
  }
}

using KeepPreviousTest = ShardTest;
INSTANTIATE_TEST_SUITE_P(Yes, KeepPreviousTest, testing::Values(true));

TEST_P(KeepPreviousTest, ThePreviousVersionIsKept) {
  std::vector<std::vector<float>> seen = {Values(0, 7)};
  for (uint32_t i = 0; i < 5; ++i) {
    ApplyNoise(0, i);
    EXPECT_EQ(Values(0, 7 + i), seen.back());
    seen.push_back(Values(0, 8 + i));
    EXPECT_NE(seen[i], seen[i + 1]);
  }
  shard_.Apply(0, {}, 1);
  EXPECT_EQ(Values(0, 12), seen.back());
  EXPECT_EQ(Values(0, 13), seen.back());
}

TEST_P(KeepPreviousTest, RowsOfThePreviousVersion) {
  const std::vector<int64_t> rows = {4, 2};
  const std::vector<float> gradient = Noise(6, 1);
  const std::vector<float> row2 = Row(1, 7, 2);
  const std::vector<float> row3 = Row(1, 7, 3);
  shard_.ApplyRows(1, {{rows, gradient.data()}}, 1);
  EXPECT_EQ(Row(1, 7, 2), row2);
  EXPECT_NE(Row(1, 8, 2), row2);
  EXPECT_EQ(Row(1, 8, 3), row3);
  const std::vector<float> changed = Row(1, 8, 2);
  shard_.ApplyRows(1, {}, 1);
  EXPECT_EQ(Row(1, 8, 2), changed);
  EXPECT_EQ(Row(1, 9, 2), changed);
}

TEST_P(KeepPreviousTest, BuffersOfThePreviousVersion) {
  const std::vector<std::byte> first(16, std::byte{1});
  const std::vector<std::byte> second(16, std::byte{2});
  const std::vector<std::byte> third(16, std::byte{3});
  EXPECT_EQ(shard_.Buffers(7), first);
  shard_.SetBuffers(second);
  EXPECT_EQ(shard_.Buffers(7), first);
  EXPECT_EQ(shard_.Buffers(8), second);
  shard_.SetBuffers(third);
  EXPECT_EQ(shard_.Buffers(8), second);
  EXPECT_EQ(shard_.Buffers(9), third);
}

TEST(Shard, EmptyShard) {
  Shard shard(ShardShape(), {.optimizer = kAdam,
                             .schedule = *Schedule::FromJson(nullptr, 0.1, 10),
                             .keep_previous = true});
  shard.Activate();
  shard.BeginSnapshot();
  shard.FinishSnapshot();
  EXPECT_TRUE(shard.Snapshot(Area::kValues).empty());
}

}  // namespace
}  // namespace muster::train
