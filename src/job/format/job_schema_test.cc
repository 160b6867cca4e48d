// Checks that docs/job.schema.json and docs/job-file.md agree with the parser.

#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/files/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/testing.h"
#include "nlohmann/json.hpp"

namespace muster::job {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr char kWrong[] = "zzzzzzzzzzzzzzzz";  // resembles no word of the parser

json Schema() {
  const auto text = base::ReadFile(MUSTER_DOCS_DIR "/job.schema.json");
  EXPECT_TRUE(text.ok()) << text.status();
  return json::parse(*text);
}

// A place in a job file where a definition of the schema is used.
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

// Returns the parser's messages for a job with `key: <wrong>` in the section. The job is written as
// JSON, which is valid YAML.
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

TEST(JobSchemaTest, SchemaAndParserHaveTheSameKeys) {
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

// Returns the range in a message that contains "from X to Y".
std::pair<double, double> RangeIn(const std::string& message) {
  std::pair<double, double> range;
  const std::vector<std::string> words = absl::StrSplit(message, absl::ByAnyChar(" ,"));
  const auto from = std::find(words.begin(), words.end(), "from");
  if (words.end() - from < 4) return {-1, -1};
  EXPECT_TRUE(absl::SimpleAtod(from[1], &range.first) && absl::SimpleAtod(from[3], &range.second));
  return range;
}

// Returns the property with its reference resolved.
json Resolved(const json& schema, const json& property) {
  json rule = property;
  if (rule.contains("$ref")) {
    const auto reference = rule["$ref"].get<std::string>();
    rule.update(schema.at(json::json_pointer(reference.substr(1))));
  }
  return rule;
}

TEST(JobSchemaTest, SchemaAndParserAcceptTheSameValues) {
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

// Returns the ```yaml blocks of a page.
std::vector<std::string> YamlBlocks(const std::string& page) {
  std::vector<std::string> blocks;
  for (absl::string_view part : absl::StrSplit(page, "```yaml\n")) {
    blocks.emplace_back(part.substr(0, part.find("```")));
  }
  blocks.erase(blocks.begin());
  return blocks;
}

TEST(JobSchemaTest, ExamplesInTheDocumentationAreValid) {
  const auto page = base::ReadFile(MUSTER_DOCS_DIR "/job-file.md");
  ASSERT_TRUE(page.ok()) << page.status();
  const std::vector<std::string> blocks = YamlBlocks(*page);
  EXPECT_GE(blocks.size(), 5u);
  for (const std::string& block : blocks) EXPECT_EQ(MistakesOf(block), "") << block;
}

TEST(JobSchemaTest, TheDocumentationNamesEveryKey) {
  const auto page = base::ReadFile(MUSTER_DOCS_DIR "/job-file.md");
  ASSERT_TRUE(page.ok()) << page.status();
  const json schema = Schema();
  for (const Section& section : Sections()) {
    for (const auto& [key, property] : PropertiesOf(schema, section).items()) {
      EXPECT_THAT(*page, HasSubstr(absl::StrCat("`", key, "`"))) << section.place;
    }
  }
}

}  // namespace
}  // namespace muster::job
