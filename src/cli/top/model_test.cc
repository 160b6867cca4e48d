#include "cli/top/model.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

namespace muster::cli {
namespace {

using testing::ElementsAre;

// Returns `count` jobs, newest first: job-<count - 1>, …, job-0. Every tenth is active.
std::vector<job::JobRecord> Jobs(int count) {
  std::vector<job::JobRecord> jobs;
  for (int i = count - 1; i >= 0; --i) {
    jobs.push_back({.id = absl::StrCat("job-", i),
                    .name = "job",
                    .state = i % 10 == 0 ? job::JobState::kRunning : job::JobState::kSucceeded,
                    .tasks = 2});
  }
  return jobs;
}

class TopModelTest : public testing::Test {
 protected:
  TopModelTest() {
    model_.Resize({80, 13});  // ten rows
    Set(Jobs(100));
  }
  void Set(std::vector<job::JobRecord> jobs) {
    model_.SetJobs(std::make_shared<const std::vector<job::JobRecord>>(std::move(jobs)));
  }
  TopAction Press(Key key) { return model_.Press({key, ""}); }
  // Types the characters and returns the last action.
  TopAction Type(const std::string& text) {
    TopAction action;
    for (const char one : text) action = model_.Press({Key::kCharacter, std::string(1, one)});
    return action;
  }
  std::string Selected() { return model_.job(model_.selected()).id; }

  TopModel model_;
};

TEST_F(TopModelTest, MovesAndScrolls) {
  EXPECT_EQ(Selected(), "job-99");
  Press(Key::kUp);
  EXPECT_EQ(Selected(), "job-99");
  Type("jjk");
  EXPECT_EQ(Selected(), "job-98");
  Press(Key::kPageDown);
  EXPECT_EQ(Selected(), "job-88");
  EXPECT_EQ(model_.VisibleJobs().size(), 10);
  EXPECT_EQ(model_.VisibleJobs().back(), "job-88");
  Press(Key::kEnd);
  EXPECT_EQ(Selected(), "job-0");
  Press(Key::kHome);
  EXPECT_EQ(model_.VisibleJobs().front(), "job-99");
}

TEST_F(TopModelTest, TheSelectionStaysOnItsJob) {
  Type("jjj");
  const size_t line = model_.selected() - model_.first();
  Set(Jobs(130));
  EXPECT_EQ(Selected(), "job-96");
  EXPECT_EQ(model_.selected() - model_.first(), line);
  // The newest job stays selected until the user moves.
  Press(Key::kHome);
  Set(Jobs(131));
  EXPECT_EQ(Selected(), "job-130");
  Press(Key::kEnd);
  Set(Jobs(3));
  EXPECT_EQ(Selected(), "job-0");
  Set({});
  EXPECT_EQ(model_.size(), 0);
  Press(Key::kDown);
  Press(Key::kEnter);
  EXPECT_EQ(model_.open_id(), "");
}

TEST_F(TopModelTest, Filters) {
  Type("/JOB-9");
  EXPECT_EQ(model_.prompt(), TopModel::Prompt::kFilter);
  EXPECT_EQ(model_.size(), 11);  // 9, 90 to 99
  EXPECT_EQ(Type("q").kind, TopAction::Kind::kNone);
  EXPECT_EQ(model_.size(), 0);
  Press(Key::kBackspace);
  Press(Key::kEnter);
  EXPECT_EQ(model_.prompt(), TopModel::Prompt::kNone);
  Type("a");
  EXPECT_THAT(model_.VisibleJobs(), ElementsAre("job-90"));
  Type("/0");
  Press(Key::kEscape);
  EXPECT_EQ(model_.filter(), "JOB-9");
  Press(Key::kEscape);
  EXPECT_EQ(model_.filter(), "");
  EXPECT_EQ(model_.size(), 10);
}

TEST_F(TopModelTest, StopsOnlyAfterTheAnswerYes) {
  Type("s");
  EXPECT_EQ(model_.prompt(), TopModel::Prompt::kNone);
  EXPECT_EQ(model_.message(), "job-99 is not running: it is Succeeded");
  Type("a");
  EXPECT_EQ(Selected(), "job-90");
  EXPECT_EQ(Type("s").kind, TopAction::Kind::kNone);
  EXPECT_EQ(Type("q").kind, TopAction::Kind::kNone);  // neither yes nor no
  EXPECT_EQ(model_.prompt(), TopModel::Prompt::kStop);
  EXPECT_EQ(Type("n").kind, TopAction::Kind::kNone);
  EXPECT_EQ(model_.message(), "nothing was stopped");
  Type("s");
  // The question is about the job that was selected, also if the list changes meanwhile.
  Set(Jobs(200));
  const TopAction stop = Type("y");
  EXPECT_EQ(stop.kind, TopAction::Kind::kStop);
  EXPECT_EQ(stop.job, "job-90");
}

TEST_F(TopModelTest, OpensAJobAndReturns) {
  Type("j");
  Press(Key::kEnter);
  EXPECT_EQ(model_.open_id(), "job-98");
  model_.SetOpen(OpenJob{.job = {.id = "job-97"}});  // read before
  EXPECT_EQ(model_.open(), nullptr);
  model_.SetOpen(OpenJob{.job = {.id = "job-98"}, .tasks = std::vector<job::TaskRecord>(5)});
  ASSERT_NE(model_.open(), nullptr);
  Press(Key::kPageDown);
  EXPECT_EQ(model_.first_task(), 4);
  Type("/");
  EXPECT_EQ(model_.prompt(), TopModel::Prompt::kNone);
  Press(Key::kLeft);
  EXPECT_EQ(model_.open_id(), "");
  EXPECT_EQ(Selected(), "job-98");
}

TEST_F(TopModelTest, HelpEndsWithAnyKey) {
  Type("?");
  EXPECT_EQ(model_.prompt(), TopModel::Prompt::kHelp);
  EXPECT_EQ(Type("q").kind, TopAction::Kind::kNone);
  EXPECT_EQ(model_.prompt(), TopModel::Prompt::kNone);
  EXPECT_EQ(Type("q").kind, TopAction::Kind::kQuit);
}

TEST_F(TopModelTest, ASmallerScreenKeepsTheSelectionVisible) {
  Type("jjjjjjjj");
  for (const int rows : {6, 4, 1, 30}) {
    model_.Resize({80, rows});
    EXPECT_EQ(Selected(), "job-91");
    EXPECT_GE(model_.selected(), model_.first());
    EXPECT_LT(model_.selected(), model_.first() + model_.page());
  }
}

}  // namespace
}  // namespace muster::cli
