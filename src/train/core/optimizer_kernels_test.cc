#include "train/core/optimizer_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "train/core/optimizer_golden.h"

namespace muster::train {
namespace {

using Floats = std::vector<float>;

OptimizerConfig ConfigOf(const golden::Case& expected) {
  const auto config =
      OptimizerConfig::FromJson(nlohmann::json::parse(expected.optimizer), expected.weight_decay);
  EXPECT_TRUE(config.ok()) << config.status();
  return *config;
}

std::vector<OptimizerConfig> EveryConfig() {
  std::vector<OptimizerConfig> configs;
  for (const golden::Case& expected : golden::kCases) configs.push_back(ConfigOf(expected));
  return configs;
}

// A variable and its slots with plausible values.
struct Variable {
  Floats values;
  Floats slots[kMaxSlots];

  Variable(int64_t n, int seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (Floats* buffer : {&values, &slots[0], &slots[1]}) {
      for (int64_t i = 0; i < n; ++i) buffer->push_back(std::abs(normal(random)) + 0.1F);
    }
  }
  bool operator==(const Variable& other) const {
    return Same(values, other.values) && Same(slots[0], other.slots[0]) &&
           Same(slots[1], other.slots[1]);
  }
  // Bit for bit.
  static bool Same(const Floats& a, const Floats& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  }
};

Floats RandomFloats(int64_t n, int seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Floats result(n);
  for (float& value : result) value = normal(random);
  return result;
}

void ApplyAt(const OptimizerConfig& config, const Update& update,
             const std::vector<const float*>& gradients, Variable& variable, int64_t begin,
             int64_t n) {
  float* const slots[kMaxSlots] = {variable.slots[0].data() + begin,
                                   variable.slots[1].data() + begin};
  float* values = variable.values.data() + begin;
  Apply(config, update, gradients, values, values, slots, n);
}

void ExpectNear(const Floats& actual, const Floats& expected, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], 1e-6 * std::max(1.0F, std::abs(expected[i])))
        << what << " [" << i << "]";
  }
}

TEST(ApplyTest, AgreesWithPyTorch) {
  for (const golden::Case& expected : golden::kCases) {
    const OptimizerConfig config = ConfigOf(expected);
    Floats values = golden::kInitial;
    std::vector<Floats> state(kMaxSlots, Floats(values.size()));
    float* const slots[kMaxSlots] = {state[0].data(), state[1].data()};
    Update update{.learning_rate = config.learning_rate};
    for (const Floats& gradient : golden::kGradients) {
      const float* const gradients[] = {gradient.data()};
      Apply(config, update, gradients, values.data(), values.data(), slots,
            static_cast<int64_t>(values.size()));
      ++update.step;
    }
    ExpectNear(values, expected.values, expected.optimizer);
    ASSERT_EQ(SlotNames(config).size(), expected.slots.size());
    for (size_t i = 0; i < expected.slots.size(); ++i) {
      ExpectNear(state[i], expected.slots[i], std::string(SlotNames(config)[i]));
    }
  }
}

TEST(ApplyTest, EveryProcessorComputesTheSameBits) {
  const auto kernels = internal::Kernels();
  for (const OptimizerConfig& config : EveryConfig()) {
    const auto coefficients = internal::CoefficientsOf(
        config, {.learning_rate = config.learning_rate, .step = 3, .scale = 1.0F / 3});
    for (int n = 0; n < 100; ++n) {
      const int shift = n % 5;
      const Floats gradient = RandomFloats(n + shift, n);
      std::vector<Variable> results;
      for (const internal::Kernel kernel : kernels) {
        Variable& v = results.emplace_back(n + 8, n);
        kernel(coefficients, {gradient.data() + shift,
                              v.values.data() + 1,
                              v.values.data() + 1,
                              {v.slots[0].data() + 2, v.slots[1].data() + 3},
                              n});
        ASSERT_EQ(v, results.front()) << config.ToJson() << " n " << n;
      }
    }
  }
}

TEST(ApplyTest, GradientsAreAddedInOrder) {
  constexpr int64_t kSize = 5'001;  // several blocks
  const Update update{.learning_rate = 0.05, .step = 2, .scale = 1.0F / 3};
  std::vector<Floats> gradients = {RandomFloats(kSize, 1)};
  std::vector<const float*> pointers = {gradients[0].data()};
  Floats sum = gradients[0];
  for (int count = 2; count <= 7; ++count) {
    const Floats& next = gradients.emplace_back(RandomFloats(kSize, count));
    pointers.push_back(next.data());
    for (int64_t i = 0; i < kSize; ++i) sum[i] += next[i];
    for (const OptimizerConfig& config : EveryConfig()) {
      Variable expected(kSize, 8);
      Variable actual = expected;
      ApplyAt(config, update, {sum.data()}, expected, 0, kSize);
      ApplyAt(config, update, pointers, actual, 0, kSize);
      EXPECT_EQ(actual, expected) << config.ToJson() << ", " << count << " gradients";
    }
  }
}

TEST(ApplyTest, TheScaleMakesAMean) {
  OptimizerConfig sgd;
  Variable variable(1, 1);
  variable.values[0] = 10;
  const float a = 3;
  const float b = 5;
  ApplyAt(sgd, {.learning_rate = 0.5, .scale = 0.5F}, {&a, &b}, variable, 0, 1);
  EXPECT_EQ(variable.values[0], 8);
}

TEST(ApplyTest, ResultsDoNotDependOnTheSplitOfAVariable) {
  constexpr int64_t kSize = 9'000;
  const Floats a = RandomFloats(kSize, 1);
  const Floats b = RandomFloats(kSize, 2);
  const Update update{.learning_rate = 0.05, .step = 7, .scale = 0.5F};
  for (const OptimizerConfig& config : EveryConfig()) {
    Variable whole(kSize, 5);
    Variable cut = whole;
    ApplyAt(config, update, {a.data(), b.data()}, whole, 0, kSize);
    for (int64_t begin = 0, n = 1; begin < kSize; begin += n, n = n * 3 + 1) {
      n = std::min(n, kSize - begin);
      ApplyAt(config, update, {a.data() + begin, b.data() + begin}, cut, begin, n);
    }
    EXPECT_EQ(cut, whole) << config.ToJson();
    const Variable before(kSize, 6);
    Variable part = before;
    ApplyAt(config, update, {a.data()}, part, 13, 4'111);
    ApplyAt(config, update, {a.data()}, part, 8'000, 0);
    for (const int64_t outside : {int64_t{12}, int64_t{13 + 4'111}, int64_t{8'000}}) {
      EXPECT_EQ(part.values[outside], before.values[outside]);
      EXPECT_EQ(part.slots[0][outside], before.slots[0][outside]);
      EXPECT_EQ(part.slots[1][outside], before.slots[1][outside]);
    }
  }
}

TEST(ApplyTest, ASeparateOutputLeavesTheInputUnchanged) {
  constexpr int64_t kSize = 1'000;
  const Floats gradient = RandomFloats(kSize, 1);
  const float* const gradients[] = {gradient.data()};
  const Update update{.learning_rate = 0.05, .step = 1, .scale = 1};
  for (const OptimizerConfig& config : EveryConfig()) {
    const Variable before(kSize, 2);
    Variable in_place = before;
    ApplyAt(config, update, {gradient.data()}, in_place, 0, kSize);
    Variable other = before;
    Floats out(kSize);
    float* const slots[kMaxSlots] = {other.slots[0].data(), other.slots[1].data()};
    Apply(config, update, gradients, other.values.data(), out.data(), slots, kSize);
    EXPECT_TRUE(Variable::Same(other.values, before.values));
    other.values = out;
    EXPECT_EQ(other, in_place) << config.ToJson();
  }
}

TEST(ApplyRowsTest, OnlySelectedRowsAreUpdated) {
  constexpr int64_t kWidth = 5;
  constexpr int64_t kRows = 8;
  const std::vector<int64_t> rows = {6, 0, 3};
  const Floats gradients = RandomFloats(static_cast<int64_t>(rows.size()) * kWidth, 1);
  const Update update{.learning_rate = 0.05, .step = 4, .scale = 0.25F};
  for (const OptimizerConfig& config : EveryConfig()) {
    Variable expected(kRows * kWidth, 2);
    Variable actual = expected;
    for (size_t i = 0; i < rows.size(); ++i) {
      ApplyAt(config, update, {gradients.data() + static_cast<int64_t>(i) * kWidth}, expected,
              rows[i] * kWidth, kWidth);
    }
    float* const slots[kMaxSlots] = {actual.slots[0].data(), actual.slots[1].data()};
    ApplyRows(config, update, gradients.data(), rows, kWidth, actual.values.data(), slots);
    EXPECT_EQ(actual, expected) << config.ToJson();
  }
}

TEST(ApplyTest, SlotsThatDoNotExistMayBeNull) {
  OptimizerConfig sgd;
  Floats values = {1, 2, 3};
  const Floats gradient = {1, 1, 1};
  const float* const gradients[] = {gradient.data()};
  float* const slots[kMaxSlots] = {nullptr, nullptr};
  const std::vector<int64_t> rows = {1};
  Apply(sgd, {.learning_rate = 1}, gradients, values.data(), values.data(), slots, 3);
  ApplyRows(sgd, {.learning_rate = 1}, gradient.data(), rows, 1, values.data(), slots);
  EXPECT_EQ(values, (Floats{0, 0, 2}));
}

}  // namespace
}  // namespace muster::train
