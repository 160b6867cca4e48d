#include "k8s/quantity.h"

#include "gtest/gtest.h"

namespace muster::k8s {
namespace {

std::string Sum(std::initializer_list<const char*> texts) {
  Quantity sum;
  for (const char* text : texts) {
    const auto one = Quantity::Parse(text);
    if (!one) return "none";
    sum += *one;
  }
  return sum.ToString();
}

TEST(QuantityTest, SumsAreCanonical) {
  EXPECT_EQ(Sum({"500m", "500m"}), "1");
  EXPECT_EQ(Sum({"0.5", "2"}), "2500m");
  EXPECT_EQ(Sum({"1", "1"}), "2");
  EXPECT_EQ(Sum({"1Gi", "512Mi"}), "1536Mi");
  EXPECT_EQ(Sum({"1Gi", "1G"}), "2073741824");
  EXPECT_EQ(Sum({"1G", "1Gi"}), "2073741824");
  EXPECT_EQ(Sum({"1.5Gi"}), "1536Mi");
  EXPECT_EQ(Sum({"1e3", "2E3"}), "3k");
  EXPECT_EQ(Sum({"1E"}), "1E");
  EXPECT_EQ(Sum({"100n"}), "100n");
  EXPECT_EQ(Sum({"0"}), "0");
  EXPECT_EQ(Sum({"+4"}), "4");
  EXPECT_EQ(Sum({"9Ei", "9Ei"}), "18Ei");
}

TEST(QuantityTest, ReadsNumbersOfManifests) {
  EXPECT_EQ(Quantity::Of(Json(2))->ToString(), "2");
  EXPECT_EQ(Quantity::Of(Json(0.25))->ToString(), "250m");
  EXPECT_FALSE(Quantity::Of(Json::array()));
}

TEST(QuantityTest, RejectsInvalidQuantities) {
  for (const char* text : {"", "x", "1x", "-1", "1 ", "1..2", ".", "e3", "1e99", "1ee", "Gi",
                           "9999999999999999999", "999999999999999999Ei"}) {
    EXPECT_FALSE(Quantity::Parse(text)) << text;
  }
  EXPECT_FALSE(Quantity::Parse(std::string(1'000, '9')));
}

}  // namespace
}  // namespace muster::k8s
