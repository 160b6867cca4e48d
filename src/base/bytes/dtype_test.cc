#include "base/bytes/dtype.h"

#include "gtest/gtest.h"

namespace muster::base {
namespace {

TEST(DTypeTest, NamesFollowSafetensorsAndAreParsedBack) {
  for (const DType dtype :
       {DType::kBool, DType::kUint8, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64,
        DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    EXPECT_EQ(ParseDType(ToString(dtype)), dtype);
  }
  EXPECT_EQ(ToString(DType::kBfloat16), "BF16");
  EXPECT_EQ(SizeOf(DType::kBfloat16), 2);
  EXPECT_EQ(ParseDType("F8"), std::nullopt);
}

TEST(DTypeTest, SpecComputesItsBytes) {
  EXPECT_EQ((TensorSpec{"w", DType::kFloat32, {64, 1, 5, 5}}.bytes()), 6400);
  EXPECT_EQ((TensorSpec{"n", DType::kInt64, {}}.bytes()), 8);
  EXPECT_EQ((TensorSpec{"e", DType::kInt64, {0, 3}}.bytes()), 0);
  EXPECT_EQ(ToString(Shape{64, 1, 28, 28}), "[64, 1, 28, 28]");
}

}  // namespace
}  // namespace muster::base
