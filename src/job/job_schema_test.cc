// Holds docs/job.schema.json and docs/job-file.md to what the parser does.

#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/testing.h"
#include "nlohmann/json.hpp"

namespace muster {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr char kWrong[] = "zzzzzzzzzzzzzzzz";  // near no word that the parser knows

json Schema() {
  const auto text = ReadFile(MUSTER_DOCS_DIR "/job.schema.json");
  EXPECT_TRUE(text.ok()) << text.status();
  return json::parse(*text);
}

// Where a definition of the schema is used in a job file.
struct Section {
  const char* definition;  // "" is the schema itself
  const char* place;       // a JSON pointer into a job
};
const std::vector<Section>& Sections() {
  static const auto& kSections = *new std::vector<Section>{
      {"", ""},
      {"role", "/roles/worker"},
      {"resources", "/roles/worker/resources"},
      {"policies", "/policies"},
      {"stall", "/policies/stall"},
      {"logs", "/policies/logs"},
      {"host", "/hosts/0"},
      {"notebook", "/notebook"},
      {"kubernetes", "/kubernetes"},
      {"role_kubernetes", "/roles/worker/kubernetes"},
      {"train", "/train"},
      {"data", "/train/data"},
      {"optimizer", "/train/optimizer"},
      {"schedule", "/train/schedule"},
      {"checkpoint", "/train/checkpoint"},
      {"evaluate", "/train/evaluate"},
      {"summary", "/train/summary"},
      {"export", "/train/export"},
      {"early_stopping", "/train/early_stopping"},
  };
  return kSections;
}

const json& PropertiesOf(const json& schema, const Section& section) {
  const json& owner = *section.definition == 0 ? schema : schema["$defs"][section.definition];
  return owner["properties"];
}

// What the parser says of a job with `key: <wrong>` in the section. A job is JSON here, which is
// YAML.
std::string MistakesWith(const Section& section, const std::string& key) {
  json job = {{"name", "a"}, {"roles", {{"worker", {{"command", "x"}}}}}};
  job[json::json_pointer(section.place)][key] = kWrong;
  return MistakesOf(job.dump());
}

TEST(JobSchemaTest, EveryObjectOfTheSchemaIsASection) {
  const json schema = Schema();
  size_t objects = 1;
  for (const auto& [name, definition] : schema["$defs"].items()) {
    if (definition.contains("properties")) ++objects;
  }
  EXPECT_EQ(objects, Sections().size());
}

TEST(JobSchemaTest, SchemaAndParserKnowTheSameKeys) {
  const json schema = Schema();
  for (const Section& section : Sections()) {
    std::vector<std::string> keys;
    for (const auto& [key, property] : PropertiesOf(schema, section).items()) {
      keys.push_back(key);
      EXPECT_TRUE(property.contains("description")) << section.place << "/" << key;
    }
    EXPECT_THAT(absl::StrCat(MistakesWith(section, kWrong), "\n"),
                HasSubstr(absl::StrCat("; expected one of: ", absl::StrJoin(keys, ", "), "\n")))
        << section.place;
  }
}

// The "from X to Y" of a message.
std::pair<double, double> RangeIn(const std::string& message) {
  std::pair<double, double> range;
  const std::vector<std::string> words = absl::StrSplit(message, absl::ByAnyChar(" ,"));
  const auto from = std::find(words.begin(), words.end(), "from");
  if (words.end() - from < 4) return {-1, -1};
  EXPECT_TRUE(absl::SimpleAtod(from[1], &range.first) && absl::SimpleAtod(from[3], &range.second));
  return range;
}

// A property with what it refers to.
json Resolved(const json& schema, const json& property) {
  json rule = property;
  if (rule.contains("$ref")) {
    const auto reference = rule["$ref"].get<std::string>();
    rule.update(schema.at(json::json_pointer(reference.substr(1))));
  }
  return rule;
}

TEST(JobSchemaTest, SchemaAndParserKnowTheSameValues) {
  const json schema = Schema();
  for (const Section& section : Sections()) {
    for (const auto& [key, property] : PropertiesOf(schema, section).items()) {
      const json rule = Resolved(schema, property);
      const std::string mistakes = MistakesWith(section, key);
      if (rule.contains("enum")) {
        const auto words = rule["enum"].get<std::vector<std::string>>();
        EXPECT_THAT(mistakes,
                    HasSubstr(absl::StrCat("must be ", absl::StrJoin(words, " | "), ",")));
      } else if (rule.value("type", json()) == "integer" ||
                 rule.value("type", json()) == "number") {
        const size_t start = mistakes.find(absl::StrCat("'", key, "' of "));
        ASSERT_NE(start, std::string::npos) << section.place << "/" << key << ": " << mistakes;
        EXPECT_EQ(RangeIn(mistakes.substr(start)),
                  std::make_pair(rule["minimum"].get<double>(), rule["maximum"].get<double>()))
            << section.place << "/" << key;
      }
    }
  }
}

// The ```yaml blocks of a page.
std::vector<std::string> YamlBlocks(const std::string& page) {
  std::vector<std::string> blocks;
  for (absl::string_view part : absl::StrSplit(page, "```yaml\n")) {
    blocks.emplace_back(part.substr(0, part.find("```")));
  }
  blocks.erase(blocks.begin());
  return blocks;
}

TEST(JobSchemaTest, TheExamplesOfTheDocumentationAreRight) {
  const auto page = ReadFile(MUSTER_DOCS_DIR "/job-file.md");
  ASSERT_TRUE(page.ok()) << page.status();
  const std::vector<std::string> blocks = YamlBlocks(*page);
  EXPECT_GE(blocks.size(), 5u);
  for (const std::string& block : blocks) EXPECT_EQ(MistakesOf(block), "") << block;
}

TEST(JobSchemaTest, TheDocumentationNamesEveryKey) {
  const auto page = ReadFile(MUSTER_DOCS_DIR "/job-file.md");
  ASSERT_TRUE(page.ok()) << page.status();
  const json schema = Schema();
  for (const Section& section : Sections()) {
    for (const auto& [key, property] : PropertiesOf(schema, section).items()) {
      EXPECT_THAT(*page, HasSubstr(absl::StrCat("`", key, "`"))) << section.place;
    }
  }
}

}  // namespace
}  // namespace muster
