#include "base/text/json.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace muster::base {
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

TEST(JsonTest, MembersAreReadByTheirType) {
  const nlohmann::json json = {{"text", "a"},
                               {"number", 7},
                               {"flag", true},
                               {"list", {"x", 1, "y"}},
                               {"object", {{"k", 1}}}};
  EXPECT_EQ(MemberOf(json, "object"), (nlohmann::json{{"k", 1}}));
  EXPECT_EQ(TextMember(json, "text"), "a");
  EXPECT_EQ(IntMember(json, "number"), 7);
  EXPECT_EQ(OptionalIntMember(json, "number"), 7);
  EXPECT_TRUE(BoolMember(json, "flag"));
  EXPECT_EQ(TextListMember(json, "list"), (std::vector<std::string>{"x", "y"}));
}

TEST(JsonTest, AbsentAndMistypedMembersAreEmpty) {
  const nlohmann::json object = {{"m", nlohmann::json::object()}};
  for (const nlohmann::json& json :
       {object, nlohmann::json(), nlohmann::json(7), nlohmann::json::array({1}), ParseJson("{")}) {
    EXPECT_TRUE(MemberOf(json, "absent").is_null());
    EXPECT_EQ(TextMember(json, "m"), "");
    EXPECT_EQ(IntMember(json, "m"), 0);
    EXPECT_EQ(OptionalIntMember(json, "m"), std::nullopt);
    EXPECT_FALSE(BoolMember(json, "m"));
    EXPECT_TRUE(TextListMember(json, "m").empty());
  }
}

}  // namespace
}  // namespace muster::base
