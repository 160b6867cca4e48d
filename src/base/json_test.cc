#include "base/json.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

std::string Nested(int levels) {
  return absl::StrCat(std::string(static_cast<size_t>(levels), '['),
                      std::string(static_cast<size_t>(levels), ']'));
}

TEST(JsonTest, ParsesAnyKindOfValue) {
  EXPECT_EQ(ParseJson(R"({"a": [1, "x"]})"), (nlohmann::json{{"a", {1, "x"}}}));
  EXPECT_EQ(ParseJson("7"), 7);
}

TEST(JsonTest, DiscardsInvalidText) {
  EXPECT_TRUE(ParseJson("").is_discarded());
  EXPECT_TRUE(ParseJson("{").is_discarded());
  EXPECT_TRUE(ParseJson("{} {}").is_discarded());
}

TEST(JsonTest, DiscardsDeepDocuments) {
  EXPECT_TRUE(ParseJson(Nested(kMaxJsonDepth)).is_array());
  EXPECT_TRUE(ParseJson(Nested(kMaxJsonDepth + 1)).is_discarded());
  EXPECT_TRUE(ParseJson(Nested(200'000)).is_discarded());
}

TEST(JsonTest, BracketsInStringsDoNotNest) {
  const std::string text = absl::StrCat(R"(["\")", std::string(1000, '['), R"("])");
  EXPECT_TRUE(ParseJson(text).is_array());
}

}  // namespace
}  // namespace muster
