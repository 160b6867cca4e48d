#include "jobs/results/notes.h"

#include <thread>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::jobs {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class NotesTest : public testing::Test {
 protected:
  const base::TempDir temp_;
  const std::string home_ = temp_.path();
};

TEST_F(NotesTest, AreStoredPerJobAndRemovedWhenEmpty) {
  EXPECT_THAT(ReadNotes(home_), IsEmpty());
  const Notes notes{.note = "best so far\n<b>", .tags = {"baseline"}, .hidden = true};
  ASSERT_TRUE(WriteNotes(home_, "a-1", notes).ok());
  ASSERT_TRUE(WriteNotes(home_, "b-2", {.tags = {"x", "y"}}).ok());
  EXPECT_THAT(ReadNotes(home_),
              ElementsAre(Pair("a-1", notes), Pair("b-2", Notes{.tags = {"x", "y"}})));
  ASSERT_TRUE(WriteNotes(home_, "a-1", {}).ok());
  ASSERT_TRUE(WriteNotes(home_, "never-there", {}).ok());
  EXPECT_THAT(ReadNotes(home_), ElementsAre(Pair("b-2", testing::_)));
}

TEST_F(NotesTest, ADamagedFileIsNotOverwritten) {
  const std::string path = base::JoinPath(home_, "notes.json");
  ASSERT_TRUE(base::ReplaceFile(path, "{\"a\": ").ok());
  EXPECT_THAT(ReadNotes(home_), IsEmpty());
  EXPECT_EQ(WriteNotes(home_, "a-1", {.note = "n"}).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(*base::ReadFile(path), "{\"a\": ");
  ASSERT_TRUE(base::ReplaceFile(path,
                                "{\"a\": 7, \"b\": {\"note\": \"kept\", \"tags\": [], "
                                "\"hidden\": false}}")
                  .ok());
  EXPECT_THAT(ReadNotes(home_), ElementsAre(Pair("b", Notes{.note = "kept"})));
}

TEST_F(NotesTest, ConcurrentWritersLoseNothing) {
  std::vector<std::thread> writers;
  for (int i = 0; i < 8; ++i) {
    writers.emplace_back([this, i] {
      for (int j = 0; j < 5; ++j) {
        EXPECT_TRUE(WriteNotes(home_, absl::StrCat(i, "-", j), {.note = "n"}).ok());
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(ReadNotes(home_).size(), 40U);
}

TEST_F(NotesTest, LimitsCountCharacters) {
  const auto accepts = [](const std::string& tag) {
    return NotesFromJson({{"note", ""}, {"tags", {tag}}, {"hidden", false}}).ok();
  };
  std::string umlauts;
  for (int i = 0; i < 100; ++i) umlauts += "\u00fc";
  EXPECT_TRUE(accepts(umlauts));
  EXPECT_FALSE(accepts(umlauts + "x"));
  EXPECT_FALSE(NotesFromJson({{"note", std::string(10'001, 'x')},
                              {"tags", nlohmann::json::array()},
                              {"hidden", false}})
                   .ok());
}

TEST_F(NotesTest, RejectsOtherShapes) {
  const auto parse = [](const char* text) {
    return NotesFromJson(nlohmann::json::parse(text, nullptr, false)).status().code();
  };
  EXPECT_EQ(parse(R"({"note": "", "tags": ["a", "a"], "hidden": false})"), absl::StatusCode::kOk);
  for (const char* text :
       {"7", "{}", R"({"note": 1, "tags": [], "hidden": false})",
        R"({"note": "", "tags": "a", "hidden": false})",
        R"({"note": "", "tags": [""], "hidden": false})",
        R"({"note": "", "tags": [1], "hidden": false})", R"({"note": "", "tags": [], "hidden": 0})",
        R"({"note": "", "tags": [], "hidden": false, "more": 1})"}) {
    EXPECT_EQ(parse(text), absl::StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace muster::jobs
