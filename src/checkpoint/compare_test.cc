#include "checkpoint/compare.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DifferencesTest, TheSameTensorsInAnotherOrderFit) {
  const base::TensorSpec a{"a", base::DType::kFloat32, {2}}, b{"b", base::DType::kInt64, {}};
  EXPECT_THAT(Differences({a, b}, {b, a}), IsEmpty());
}

TEST(DifferencesTest, NamesEveryKindOfDifference) {
  EXPECT_THAT(
      Differences({{"kept", base::DType::kFloat32, {1}},
                   {"fc.weight", base::DType::kFloat32, {10, 20}},
                   {"fc.bias", base::DType::kFloat32, {10}},
                   {"new", base::DType::kFloat32, {3}}},
                  {{"kept", base::DType::kFloat32, {1}},
                   {"old", base::DType::kInt64, {}},
                   {"fc.bias", base::DType::kFloat16, {10}},
                   {"fc.weight", base::DType::kFloat32, {10, 30}}}),
      ElementsAre("fc.weight: F32 [10, 20] in the model, F32 [10, 30] in the checkpoint",
                  "fc.bias: F32 [10] in the model, F16 [10] in the checkpoint",
                  "new: F32 [3] is not in the checkpoint", "old: I64 [] is not in the model"));
}

TEST(DifferencesTest, ListsTenAndCountsTheRest) {
  std::vector<base::TensorSpec> model;
  for (int i = 0; i < 25; ++i) model.push_back({absl::StrCat("t", i), base::DType::kFloat32, {1}});
  const auto lines = Differences(model, {});
  ASSERT_EQ(lines.size(), 11u);
  EXPECT_EQ(lines.back(), "and 15 more");
}

}  // namespace
}  // namespace muster::checkpoint
