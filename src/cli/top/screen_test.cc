#include "cli/top/screen.h"

#include "base/text/terminal_text.h"
#include "cli/terminal/terminal_testing.h"
#include "gmock/gmock.h"

namespace muster::cli {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr char kHostile[] = "\x1b]0;title\a\x1b[2Jcle\tar\x9b";

class TopScreenTest : public testing::Test {
 protected:
  TopScreenTest() : now_(absl::FromUnixSeconds(1'000'000)) {
    std::vector<job::JobRecord> jobs = {{.id = "mnist-x7k2q",
                                         .name = "mnist",
                                         .platform = "local",
                                         .state = job::JobState::kRunning,
                                         .created = now_ - absl::Minutes(3),
                                         .tasks = 4},
                                        {.id = absl::StrCat("evil", kHostile),
                                         .name = kHostile,
                                         .platform = "ssh",
                                         .state = job::JobState::kFailed,
                                         .created = now_ - absl::Hours(30),
                                         .tasks = 1}};
    model_.SetJobs(std::make_shared<const std::vector<job::JobRecord>>(jobs));
    JobDetail detail{
        .running = 3,
        .progress =
            jobs::Progress{
                .step = 760, .steps = 2000, .loss = 0.0712, .examples_per_second = 5321.4},
        .left = absl::Seconds(90)};
    model_.SetDetails({{"mnist-x7k2q", detail}});
    open_ = OpenJob{.job = jobs[0], .detail = detail};
    for (int i = 0; i < 30; ++i) {
      open_.tasks.push_back({.id = {"worker", i},
                             .state = job::TaskState::kRunning,
                             .attempt = 1,
                             .restarts = 2,
                             .host = "node-7",
                             .reason = kHostile});
      open_.lines.push_back({"worker:0", absl::StrCat("line ", i, kHostile)});
    }
  }

  // Returns the frame after checking what holds for every frame.
  Frame Draw(int columns, int rows) {
    model_.Resize({columns, rows});
    Frame frame = DrawTop(model_, output_.terminal(), now_);
    EXPECT_EQ(frame.lines.size(), static_cast<size_t>(rows));
    for (const std::string& line : frame.lines) {
      EXPECT_LE(base::DisplayWidth(line), columns) << line;
      for (const char one : line) EXPECT_GE(static_cast<unsigned char>(one), ' ') << line;
    }
    return frame;
  }

  const absl::Time now_;
  FileOutput output_;
  TopModel model_;
  OpenJob open_;
};

TEST_F(TopScreenTest, ShowsAJobInARow) {
  const Frame frame = Draw(140, 24);
  EXPECT_EQ(frame.lines[0], "muster top  2 jobs, 1 active");
  EXPECT_THAT(frame.lines[1],
              ContainsRegex("^  STATE +JOB +NAME +PLATFORM +STEP +LOSS +RATE +ETA +TASKS +AGE"));
  EXPECT_THAT(frame.lines[2],
              ContainsRegex("^> Running +mnist-x7k2q +mnist +local +760/2000 +0.0712 +5,321/s "
                            "+1m30s +3/4 +3m00s"));
  EXPECT_EQ(frame.highlighted, 2);
  EXPECT_THAT(frame.lines[3], ContainsRegex("^  Failed +evil\\^\\["));
}

TEST_F(TopScreenTest, FitsEveryTerminal) {
  for (const int columns : {1, 10, 20, 40, 80, 100, 300}) {
    for (const int rows : {1, 2, 3, 5, 24, 100}) {
      Draw(columns, rows);
      model_.Press({Key::kEnter, ""});
      Draw(columns, rows);
      model_.SetOpen(open_);
      Draw(columns, rows);
      model_.Press({Key::kCharacter, "s"});
      Draw(columns, rows);
      model_.Press({Key::kEscape, ""});
      model_.Press({Key::kCharacter, "?"});
      Draw(columns, rows);
      model_.Press({Key::kEscape, ""});
      model_.Press({Key::kEscape, ""});
    }
  }
  // The most important columns stay.
  const Frame narrow = Draw(80, 24);
  EXPECT_THAT(narrow.lines[1], ContainsRegex("^  STATE +JOB +STEP +LOSS +ETA +TASKS +AGE"));
  EXPECT_THAT(Draw(40, 24).lines[1], ContainsRegex("^  STATE +JOB +AGE"));
}

TEST_F(TopScreenTest, ShowsTheTasksAndTheLastLinesOfAnOpenJob) {
  model_.Press({Key::kEnter, ""});
  model_.SetOpen(open_);
  const Frame frame = Draw(100, 24);
  EXPECT_THAT(frame.lines[0], HasSubstr("mnist-x7k2q  Running  local, 3m00s"));
  EXPECT_EQ(frame.lines[1], "step 760 of 2000, loss 0.0712, 5,321 examples/s, 1m30s left");
  EXPECT_THAT(frame.lines[3], ContainsRegex("worker:0 +Running +2 +2 +node-7"));
  EXPECT_THAT(frame.lines[12], HasSubstr("OUTPUT  (21 more tasks"));
  EXPECT_THAT(frame.lines[22], HasSubstr("worker:0 | line 29^[]0;title^G"));
  EXPECT_THAT(frame.lines[22], Not(HasSubstr("\x1b")));
}

TEST_F(TopScreenTest, AsksBeforeItStops) {
  model_.Press({Key::kCharacter, "s"});
  EXPECT_EQ(Draw(80, 24).lines.back(), "Stop mnist-x7k2q (Running, 4 tasks)? y/n");
}

TEST_F(TopScreenTest, ALongCountOfStepsBecomesAShare) {
  JobDetail detail;
  detail.progress = jobs::Progress{.step = 1'500'000, .steps = 10'000'000};
  model_.SetDetails({{"mnist-x7k2q", detail}});
  EXPECT_THAT(Draw(80, 24).lines[2], HasSubstr("  15%  "));
}

TEST_F(TopScreenTest, AnEmptyHistoryHasAdvice) {
  model_.SetJobs(std::make_shared<const std::vector<job::JobRecord>>());
  EXPECT_THAT(Draw(80, 24).lines[2], HasSubstr("`muster run job.yaml` starts one"));
}

}  // namespace
}  // namespace muster::cli
