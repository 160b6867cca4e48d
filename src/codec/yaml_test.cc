#include "codec/yaml.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::codec {
namespace {

std::vector<Node> Parse(absl::string_view text, const ParseLimits& limits = {}) {
  Diagnostics diagnostics("f");
  std::vector<Node> documents = ParseYaml(text, limits, diagnostics);
  EXPECT_TRUE(diagnostics.empty()) << diagnostics.ToStatus();
  return documents;
}

std::string Json(absl::string_view text) {
  const std::vector<Node> documents = Parse(text);
  return documents.size() == 1 ? ToJson(documents[0]).dump() : "not one document";
}

std::string Mistakes(absl::string_view text, const ParseLimits& limits = {}) {
  Diagnostics diagnostics("f");
  ParseYaml(text, limits, diagnostics);
  return std::string(diagnostics.ToStatus().message());
}

TEST(YamlTest, KeysAndValuesHavePositions) {
  const Node document = Parse("a: 1\nb:\n  - {c: x}\n  -\nd:\n")[0];
  EXPECT_EQ(document.mark, (Mark{1, 1}));
  EXPECT_EQ(document.entries[1].key.mark, (Mark{2, 1}));
  EXPECT_EQ(document.Find("b")->mark, (Mark{3, 3}));
  EXPECT_EQ(document.Find("b")->items[0].Find("c")->mark, (Mark{3, 9}));
  // An omitted value has the position of its key.
  EXPECT_EQ(document.Find("d")->mark, (Mark{5, 1}));
  EXPECT_EQ(document.Find("absent"), nullptr);
}

TEST(YamlTest, QuotedScalarsAreText) {
  EXPECT_EQ(Json("- 5\n- '5'\n- \"5\"\n- !!str 5\n- |\n  5\n"), R"([5,"5","5","5","5\n"])");
}

TEST(YamlTest, JsonIsYaml) {
  EXPECT_EQ(Json(R"({"a": [1, {"b": null}], "c": "\u00e9\n"})"),
            R"({"a":[1,{"b":null}],"c":"é\n"})");
}

TEST(YamlTest, LineEndsTabsAndByteOrderMarks) {
  EXPECT_EQ(Json("a: 1\r\nb: |\r\n  x\r\n  y\r\n"), R"({"a":1,"b":"x\ny\n"})");
  EXPECT_EQ(Json("\xEF\xBB\xBF"
                 "a: 1\n"),
            R"({"a":1})");
  EXPECT_EQ(Json("a:\t1\t# comment\n"), R"({"a":1})");
}

TEST(YamlTest, DocumentsWithoutContentAreSkipped) {
  EXPECT_TRUE(Parse("").empty());
  EXPECT_TRUE(Parse("# only\n# comments").empty());
  EXPECT_TRUE(Parse("---\n---\n...\n").empty());
  EXPECT_EQ(Parse("---\na: 1\n---\n# none\n---\nb: 2\n").size(), 2u);
}

TEST(YamlTest, DuplicateKeysNameBothPositions) {
  EXPECT_EQ(Mistakes("a: 1\nb: {c: 1, c: 2}\na: 2\n"),
            "f:2:11: the key 'c' is already set at 2:5\n"
            "f:3:1: the key 'a' is already set at 1:1");
}

TEST(YamlTest, DuplicateKeysDoNotStopParsing) {
  Diagnostics diagnostics("f");
  const std::vector<Node> documents = ParseYaml("a: 1\na: 2\nb: 3\n", {}, diagnostics);
  ASSERT_EQ(documents.size(), 1u);
  EXPECT_EQ(ToJson(documents[0]).dump(), R"({"a":1,"b":3})");
  EXPECT_EQ(diagnostics.count(), 1u);
}

TEST(YamlTest, SyntaxErrorsYieldNoDocuments) {
  Diagnostics diagnostics("f");
  EXPECT_TRUE(ParseYaml("a: 1\nb: [\n", {}, diagnostics).empty());
  EXPECT_FALSE(diagnostics.empty());
}

TEST(YamlTest, AliasesAreCopies) {
  EXPECT_EQ(Json("a: &x {p: 1}\nb: [*x, *x]\n"), R"({"a":{"p":1},"b":[{"p":1},{"p":1}]})");
  EXPECT_EQ(Mistakes("a: *x\n"),
            "f:1:4: not valid YAML: the alias refers to no earlier anchor (&name)");
  EXPECT_EQ(Mistakes("a: &x [*x]\n"), "f:1:8: an alias inside the value that it names");
}

TEST(YamlTest, MergeKeys) {
  EXPECT_EQ(Json("d: &d {p: 1, q: 2}\nm: {<<: *d, q: 3}\n"),
            R"({"d":{"p":1,"q":2},"m":{"p":1,"q":3}})");
  EXPECT_EQ(Json("m:\n  <<: [{a: 1}, {a: 2, b: 3}]\n"), R"({"m":{"a":1,"b":3}})");
  EXPECT_EQ(Json("m: {'<<': 1}\n"), R"({"m":{"<<":1}})");
  EXPECT_EQ(Mistakes("m: {<<: 1}\n"),
            "f:1:9: '<<' takes a map or a list of maps, not the number 1");
}

TEST(YamlTest, KeysMustBeText) {
  EXPECT_EQ(Mistakes("{a: 1}: b\n"),
            "f:1:1: a key must be text, not a list or a map; is a bracket left open?");
  EXPECT_EQ(Mistakes("~: b\n"), "f:1:1: a key must be text, not nothing");
}

TEST(YamlTest, SyntaxErrorsNameTheRemedy) {
  EXPECT_EQ(
      Mistakes("a: b: c\n"),
      "f:1:5: not valid YAML: ':' is not expected here; indent with spaces, and quote text that "
      "contains ': '");
  EXPECT_EQ(
      Mistakes("a:\n\tb: 1\n"),
      "f:2:3: not valid YAML: ':' is not expected here; indent with spaces, and quote text that "
      "contains ': '");
  EXPECT_EQ(Mistakes("a:\n  - b\n c: 1\n"),
            "f:3:2: not valid YAML: expected a key here; check the indentation");
  EXPECT_EQ(Mistakes("a: {b: 1\nc: 2\n"), "f:2:2: not valid YAML: expected ',' or '}' here");
  EXPECT_EQ(Mistakes("a: @x\n"),
            "f:1:4: not valid YAML: text cannot begin with this character; quote it");
  EXPECT_EQ(Mistakes("a: !file x\n"), "f:1:4: the tag '!file' is not supported; leave it out");
}

TEST(YamlTest, AnUnclosedQuoteDoesNotSwallowTheFile) {
  EXPECT_EQ(Mistakes("a: 1\nb: \"text\nc: 2\n"),
            "f:2:1: quoted text that begins after this position is never closed");
  EXPECT_EQ(Mistakes("b: 'text"),
            "f:1:1: quoted text that begins after this position is never closed");
}

TEST(YamlTest, RejectsBinaryData) {
  EXPECT_EQ(Mistakes(std::string("a: 1\nb: \0x\n", 11)),
            "f:2:4: the control character 0x00 is not allowed; is this a text file?");
  EXPECT_EQ(Mistakes("a: \x04 b\n"),
            "f:1:4: the control character 0x04 is not allowed; is this a text file?");
  for (const char* bytes : {"\xFF", "\xC3", "\xC0\xAF", "\xE0\x80\x80", "\xED\xA0\x80",
                            "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\x80"}) {
    EXPECT_NE(Mistakes(absl::StrCat("a: ", bytes)).find("f:1:4: the byte 0x"), std::string::npos);
  }
  EXPECT_EQ(Mistakes("\xFF\xFE"
                     "a"),
            "f: the text is UTF-16; save it as UTF-8");
  EXPECT_EQ(Json("a: \xE2\x82\xAC \xF0\x9F\x98\x80"), R"({"a":"€ 😀"})");
}

TEST(YamlTest, EscapesMustProduceValidText) {
  EXPECT_EQ(Json(R"(a: "\u00e9\x41\t\n")"), R"({"a":"éA\t\n"})");
  for (const char* text : {R"(a: "x\0")", R"("\u0000": 1)", R"(a: "\N")", R"(a: "\_")"}) {
    EXPECT_THAT(Mistakes(text), testing::HasSubstr("an escape in this text produces")) << text;
  }
}

TEST(YamlTest, SizeIsLimited) {
  EXPECT_EQ(Mistakes(std::string(5 << 20, 'a')), "f: larger than 4.0MiB");
  EXPECT_EQ(Parse(std::string(4 << 20, 'a')).size(), 1u);
}

TEST(YamlTest, DepthIsLimited) {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(Parse(nested(64)).size(), 1u);
  EXPECT_EQ(Mistakes(nested(65)), "f:1:65: nested deeper than 64 levels");
  EXPECT_EQ(Mistakes(nested(100'000)), "f:1:65: nested deeper than 64 levels");
  EXPECT_EQ(Mistakes(std::string(2'000'000, '[')), "f: too many brackets, commas and colons");
  std::string block;
  for (int i = 0; i < 1000; ++i) absl::StrAppend(&block, std::string(i, ' '), "a:\n");
  EXPECT_EQ(Mistakes(block), "f:65:65: nested deeper than 64 levels");
}

TEST(YamlTest, DepthIsLimitedThroughAliasesToo) {
  std::string text = "a0: &a0 [x]\n";
  for (int i = 1; i < 100; ++i) absl::StrAppend(&text, "a", i, ": &a", i, " [*a", i - 1, "]\n");
  EXPECT_EQ(Mistakes(text), "f:64:12: nested deeper than 64 levels");
}

TEST(YamlTest, AliasBombsAreRejected) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 20; ++i) {
    const std::vector<std::string> aliases(10, absl::StrCat("*a", i - 1));
    absl::StrAppend(&text, "a", i, ": &a", i, " [", absl::StrJoin(aliases, ", "), "]\n");
  }
  EXPECT_NE(Mistakes(text).find("more than 200000 values"), std::string::npos);
  const std::vector<std::string> aliases(10'000, "*a");
  const std::string large = absl::StrCat("a: &a ", std::string(1'000'000, 'x'), "\nb: [",
                                         absl::StrJoin(aliases, ","), "]\n");
  EXPECT_NE(Mistakes(large).find("more than 4.0MiB of text"), std::string::npos);
}

TEST(YamlTest, NodesAndDocumentsAreLimited) {
  std::string items;
  for (int i = 0; i < 200'001; ++i) items += "- x\n";
  EXPECT_EQ(Mistakes(items),
            "f:200000:3: more than 200000 values (an alias counts as often as it is used)");
  std::string documents;
  for (int i = 0; i < 65; ++i) documents += "--- x\n";
  EXPECT_EQ(Mistakes(documents), "f:65:1: more than 64 documents in one file");
}

}  // namespace
}  // namespace muster::codec
