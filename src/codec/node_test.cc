#include "codec/node.h"

#include "codec/yaml.h"
#include "gtest/gtest.h"

namespace muster::codec {
namespace {

Node Scalar(std::string text, bool quoted = false) {
  return {.kind = Node::Kind::kScalar, .scalar = std::move(text), .quoted = quoted};
}

TEST(NodeTest, IntegersInAnyNotation) {
  EXPECT_EQ(AsInt(Scalar("2000")), 2000);
  EXPECT_EQ(AsInt(Scalar("+7")), 7);
  EXPECT_EQ(AsInt(Scalar("-5")), -5);
  EXPECT_EQ(AsInt(Scalar("007")), 7);
  EXPECT_EQ(AsInt(Scalar("2e3")), 2000);
  EXPECT_EQ(AsInt(Scalar("3.0")), 3);
  EXPECT_EQ(AsInt(Scalar("0x1F")), 31);
  EXPECT_EQ(AsInt(Scalar("0o17")), 15);
  EXPECT_EQ(AsInt(Scalar("9223372036854775807")), INT64_MAX);
}

TEST(NodeTest, RejectsNonIntegers) {
  for (const char* text : {"", "-", ".", "e5", "1e", "1.5", "1_000", "0x", "0xfffffffffffffffff",
                           "9223372036854775808", "1e400", "nan", ".inf", "2 ", "0o8", "one"}) {
    EXPECT_EQ(AsInt(Scalar(text)), std::nullopt) << text;
  }
  EXPECT_EQ(AsInt(Scalar("5", /*quoted=*/true)), std::nullopt);
}

TEST(NodeTest, NumbersAndBooleans) {
  EXPECT_EQ(AsNumber(Scalar("1e-3")), 0.001);
  EXPECT_EQ(AsNumber(Scalar(".5")), 0.5);
  EXPECT_EQ(AsNumber(Scalar("5.")), 5.0);
  EXPECT_EQ(AsNumber(Scalar("inf")), std::nullopt);
  EXPECT_EQ(AsBool(Scalar("true")), true);
  EXPECT_EQ(AsBool(Scalar("False")), false);
  EXPECT_EQ(AsBool(Scalar("yes")), std::nullopt);
  EXPECT_EQ(AsBool(Scalar("true", /*quoted=*/true)), std::nullopt);
}

TEST(NodeTest, Describes) {
  EXPECT_EQ(Describe({}), "nothing");
  EXPECT_EQ(Describe({.kind = Node::Kind::kMap}), "a map");
  EXPECT_EQ(Describe({.kind = Node::Kind::kSequence}), "a list");
  EXPECT_EQ(Describe(Scalar("abc")), "text 'abc'");
  EXPECT_EQ(Describe(Scalar("5")), "the number 5");
  EXPECT_EQ(Describe(Scalar("5", /*quoted=*/true)), "text '5'");
  EXPECT_EQ(Describe(Scalar("true")), "true");
  EXPECT_LT(Describe(Scalar(std::string(1'000'000, 'x'))).size(), 80u);
}

TEST(NodeTest, ToJsonFollowsTheCoreSchema) {
  Diagnostics diagnostics("f");
  const auto documents = ParseYaml(
      "{i: 5, f: 2.0, e: 1e3, h: 0x10, b: true, n: null, s: '5', t: text, inf: .inf, l: [1, a], m: "
      "{}}",
      {}, diagnostics);
  ASSERT_TRUE(diagnostics.empty()) << diagnostics.ToStatus();
  EXPECT_EQ(ToJson(documents[0]).dump(),
            R"({"b":true,"e":1000.0,"f":2.0,"h":16,"i":5,"inf":".inf","l":[1,"a"],"m":{},"n":null,)"
            R"("s":"5","t":"text"})");
}

}  // namespace
}  // namespace muster::codec
