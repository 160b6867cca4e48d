// Tasks on other machines, whose reports arrive late.
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "supervise/lifecycle.h"
#include "supervise/lifecycle_testing.h"

namespace muster::supervise {
namespace {

using testing::ElementsAre;

// The first failure happened on the host that reports last.
TEST(LifecycleLateReportTest, TheFirstFailureIsTheEarliestInAnyOrderOfReports) {
  Play play(Job({Role("worker", 3)}));
  const absl::Time began = play.now();
  play.Pass(absl::Seconds(10));
  play.Exit(kWorker1, 1);  // the other tasks are requested to end
  play.Pass(absl::Seconds(1));
  AttemptEnd late = ExitWith(3);
  late.time = began + absl::Seconds(4);
  late.unrequested = true;
  play.End(kWorker0, late);
  AttemptEnd asked = ExitWith(143);
  asked.time = began + absl::Seconds(10.5);
  play.End({"worker", 2}, asked);
  const job::FailureReport& report = *play.life().failure();
  EXPECT_EQ(report.first->task, kWorker0);
  EXPECT_EQ(play.life().reason(), "worker:0 failed: exit code 3");
  EXPECT_EQ(report.summary, play.life().reason());
  EXPECT_EQ(report.first->time, began + absl::Seconds(4));
  EXPECT_EQ(play.life().tasks().at(kWorker0).finished, began + absl::Seconds(4));
  EXPECT_EQ(play.StateOf(kWorker0), job::TaskState::kFailed);
  EXPECT_THAT(report.victims,
              ElementsAre("worker:1: exit code 1, 6.0 s later", "worker:2: stopped by muster"));
}

// A report of a host may arrive after the chief has finished.
TEST(LifecycleLateReportTest, ATaskThatIsAboutToStartMayFinishToo) {
  const absl::Time now = absl::UnixEpoch();
  Lifecycle life(Job({Role("chief"), Role("worker")}), now);
  life.TakeActions();
  life.OnSent(kChief);
  life.OnSent(kWorker0);
  life.OnStarted(kChief, now);
  life.OnEnded(kChief, ExitWith(0), now);
  EXPECT_FALSE(life.done());
  life.OnStarted(kWorker0, now);
  life.OnEnded(kWorker0, ExitWith(0), now);
  EXPECT_TRUE(life.done());
  EXPECT_EQ(life.tasks().at(kWorker0).state, job::TaskState::kSucceeded);
}

// A host's clock differs from ours.
TEST(LifecycleLateReportTest, ARequestedEndIsNoFailureDespiteClockSkew) {
  Play play(Job({Role("worker", 2)}));
  play.Pass(absl::Seconds(10));
  play.Stop();
  AttemptEnd asked = ExitWith(143);
  asked.time = play.now() - absl::Milliseconds(20);
  play.End(kWorker0, asked);
  play.End(kWorker1, asked);
  EXPECT_EQ(play.life().state(), job::JobState::kStopped);
  EXPECT_EQ(play.StateOf(kWorker0), job::TaskState::kStopped);
  EXPECT_FALSE(play.life().failure().has_value());
}

TEST(LifecycleLateReportTest, TheStartTimeoutIsSuspendedWhileTheHostIsUnreachable) {
  job::RoleSpec server = Role("ps");
  server.ready = job::Readiness::kListening;
  Play play(Job({Role("worker"), server}, {.start_timeout = absl::Seconds(20)}));
  play.Pass(absl::Seconds(15));
  play.life().SetUnreachable(kPs, true, play.now());
  play.Pass(absl::Hours(1));
  EXPECT_FALSE(play.life().ending());
  play.life().SetUnreachable(kPs, false, play.now());
  play.Pass(absl::Seconds(19.9));
  EXPECT_FALSE(play.life().ending());
  play.Pass(absl::Seconds(0.1));
  EXPECT_TRUE(play.life().ending());
}

}  // namespace
}  // namespace muster::supervise
