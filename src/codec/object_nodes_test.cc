#include "codec/object_nodes.h"

#include "gtest/gtest.h"

namespace muster::codec {
namespace {

using Json = nlohmann::json;

TEST(ObjectNodesTest, MarksAreFieldPaths) {
  const Json object = {{"spec", {{"list", {1, {{"name", "x"}}}}, {"a/b", true}}}};
  ObjectNodes nodes(object);
  Diagnostics diagnostics([&](Mark mark) { return nodes.PathOf(mark); });
  const Node root = nodes.Build({}, diagnostics);
  const Node& spec = *root.Find("spec");
  diagnostics.Add(spec.Find("list")->items[1].Find("name")->mark, "third");
  diagnostics.Add(spec.Find("a/b")->mark, "second");
  diagnostics.Add(root.mark, "first");
  diagnostics.Warn(spec.Find("list")->mark, "look");
  EXPECT_EQ(diagnostics.ToStatus().message(),
            "first\nspec['a/b']: second\nspec.list[1].name: third");
  EXPECT_EQ(diagnostics.Warnings(), std::vector<std::string>{"spec.list: look"});
}

TEST(ObjectNodesTest, ValuesAreUnchanged) {
  const Json object = {{"text", "5"},     {"number", 5},      {"fraction", 2.5},    {"yes", true},
                       {"none", nullptr}, {"list", {1, "a"}}, {"map", {{"k", "v"}}}};
  ObjectNodes nodes(object);
  Diagnostics diagnostics("");
  EXPECT_EQ(ToJson(nodes.Build({}, diagnostics)), object);
  EXPECT_TRUE(diagnostics.empty());
}

TEST(ObjectNodesTest, LongKeysAreShortened) {
  const Json object = {{std::string(100'000, 'k'), 1}};
  ObjectNodes nodes(object);
  Diagnostics diagnostics("");
  const Node root = nodes.Build({}, diagnostics);
  EXPECT_LT(nodes.PathOf(root.entries[0].value.mark).size(), 200u);
}

TEST(ObjectNodesTest, WideListsTakeNoMemory) {
  const Json wide(1'000'000, 1);
  ObjectNodes nodes(wide);
  Diagnostics diagnostics("");
  EXPECT_EQ(nodes.Build({.nodes = 500}, diagnostics).items.capacity(), 0u);
  EXPECT_EQ(diagnostics.ToStatus().message(), "the object is larger than 500 values");
}

TEST(ObjectNodesTest, LimitsAreKept) {
  Json deep = 1;
  for (int i = 0; i < 100; ++i) deep = Json::array({deep});
  const Json wide(1000, 1);
  for (const auto& [object, limit] : {std::pair(deep, "the object is nested deeper than 64"),
                                      std::pair(wide, "the object is larger than 500 values")}) {
    ObjectNodes nodes(object);
    Diagnostics diagnostics("");
    EXPECT_EQ(nodes.Build({.nodes = 500}, diagnostics).kind, Node::Kind::kNull);
    EXPECT_EQ(diagnostics.ToStatus().message(), limit);
  }
}

}  // namespace
}  // namespace muster::codec
