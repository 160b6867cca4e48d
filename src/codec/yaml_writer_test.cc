#include "codec/yaml_writer.h"

#include <vector>

#include "codec/yaml.h"
#include "gtest/gtest.h"

namespace muster::codec {
namespace {

using Json = nlohmann::ordered_json;

TEST(YamlWriterTest, BlockStyleInOrder) {
  const Json value = {{"kind", "Service"},
                      {"metadata", {{"name", "a-0"}, {"labels", {{"muster/job", "a"}}}}},
                      {"spec",
                       {{"ports", {{{"name", "x"}, {"port", 2222}}, {{"port", 1}}}},
                        {"nested", {{1, 2}, Json::array()}},
                        {"empty", Json::object()},
                        {"clusterIP", "None"},
                        {"flag", true}}}};
  EXPECT_EQ(ToYaml(value), R"(kind: Service
metadata:
  name: a-0
  labels:
    muster/job: a
spec:
  ports:
    - name: x
      port: 2222
    - port: 1
  nested:
    - - 1
      - 2
    - []
  empty: {}
  clusterIP: None
  flag: true
)");
}

const std::vector<std::string>& Texts() {
  static const auto& kTexts = *new std::vector<std::string>{"plain",
                                                            "two words",
                                                            "",
                                                            " ",
                                                            "yes",
                                                            "No",
                                                            "ON",
                                                            "null",
                                                            "~",
                                                            "0042",
                                                            "1e3",
                                                            "0x1F",
                                                            "1_000",
                                                            "12:30:45",
                                                            "2001-01-01",
                                                            "-",
                                                            "- a",
                                                            "a: b",
                                                            "a #b",
                                                            "#",
                                                            "&x",
                                                            "*x",
                                                            "!x",
                                                            "|",
                                                            ">",
                                                            "%x",
                                                            "@x",
                                                            "`x",
                                                            "{x}",
                                                            "[x]",
                                                            "a,b",
                                                            "'",
                                                            "\"",
                                                            "\\",
                                                            "key:",
                                                            "line\n",
                                                            "two\nlines",
                                                            "two\nlines\n",
                                                            "more\n\n",
                                                            "\n",
                                                            "\nx",
                                                            " x\ny",
                                                            "x\n  y\n z",
                                                            "tab\there",
                                                            "x\ty\nz",
                                                            "\r\n",
                                                            "bell\x07",
                                                            "del\x7f",
                                                            "ümläut 日本 😀",
                                                            "{\n  \"a\": 1\n}",
                                                            "a\n\n\nb",
                                                            "trailing \nblank",
                                                            "=",
                                                            "<<",
                                                            "/a/b=c",
                                                            ".inf"};
  return kTexts;
}

TEST(YamlWriterTest, OutputIsParsedBackUnchanged) {
  for (const std::string& text : Texts()) {
    const Json value = {{"a", text}, {"b", {text, {{"c", text}}}}, {text.empty() ? "e" : text, 1}};
    Diagnostics diagnostics("test");
    const std::vector<Node> nodes = ParseYaml(ToYaml(value), {}, diagnostics);
    ASSERT_EQ(nodes.size(), 1U) << ToYaml(value) << diagnostics.ToStatus();
    EXPECT_EQ(ToJson(nodes[0]), nlohmann::json(value)) << ToYaml(value);
  }
}

TEST(YamlWriterTest, NumbersAndNulls) {
  EXPECT_EQ(ToYaml({{"a", nullptr}, {"b", -1.5}, {"c", 18446744073709551615ULL}}),
            "a: null\nb: -1.5\nc: 18446744073709551615\n");
  EXPECT_EQ(ToYaml("text"), "text\n");
}

TEST(YamlWriterTest, ParsedTextKeepsItsMeaning) {
  const std::string text =
      "version: 1.10\nmask: 0x1f\nzip: \"0042\"\nnone:\non: yes\nline: a plain text, in words\n"
      "block: |\n  one\n  two\nflow: {a: [1, x, {}], b: []}\n---\n- - true\n- k: v\n";
  Diagnostics diagnostics("");
  const std::vector<Node> nodes = ParseYaml(text, {}, diagnostics);
  const std::string written = ToYamlDocuments(nodes);
  EXPECT_EQ(written, R"(version: 1.10
mask: 0x1f
zip: "0042"
none: null
"on": "yes"
line: "a plain text, in words"
block: |
  one
  two
flow:
  a:
    - 1
    - x
    - {}
  b: []
---
- - true
- k: v
)");
  EXPECT_EQ(ToYamlDocuments(ParseYaml(written, {}, diagnostics)), written);
  EXPECT_TRUE(diagnostics.empty());
}

}  // namespace
}  // namespace muster::codec
