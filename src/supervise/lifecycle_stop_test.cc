// Stops in every state of a job, and updates of a running job.
#include "gmock/gmock.h"
#include "supervise/lifecycle.h"
#include "supervise/lifecycle_testing.h"

namespace muster::supervise {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

job::RoleSpec Listening(const std::string& name) {
  job::RoleSpec role = Role(name);
  role.ready = job::Readiness::kListening;
  return role;
}

TEST(LifecycleStopTest, RequestsThenKillsThenKillsAgain) {
  Play play(Job({Role("worker")}, {.stop_grace = absl::Seconds(10)}));
  play.Take();
  play.Stop();
  EXPECT_THAT(play.Take(), ElementsAre("term worker:0"));
  play.Pass(absl::Seconds(9.9));
  EXPECT_THAT(play.Take(), IsEmpty());
  play.Pass(absl::Seconds(0.1));
  EXPECT_THAT(play.Take(), ElementsAre("kill worker:0"));
  play.Pass(absl::Seconds(5));
  EXPECT_THAT(play.Take(), ElementsAre("kill worker:0"));
  play.Exit(kWorker0, 137);
  EXPECT_EQ(play.life().state(), job::JobState::kStopped);
  EXPECT_EQ(play.life().reason(), "stopped by the user");
  EXPECT_EQ(play.StateOf(kWorker0), job::TaskState::kStopped);
  EXPECT_FALSE(play.life().failure().has_value());
  EXPECT_EQ(play.life().next_timer(), absl::InfiniteFuture());
}

TEST(LifecycleStopTest, ALateReportOfAFailureKeepsTheGracePeriodOfOthers) {
  Play play(Job({Role("chief"), Role("worker", 1, job::RestartPolicy::kNever)},
                {.stop_grace = absl::Seconds(10)}));
  play.Pass(absl::Minutes(5));
  play.Take();
  AttemptEnd end = ExitWith(3);
  end.time = play.now() - absl::Minutes(1);
  play.End(kWorker0, end);
  EXPECT_THAT(play.Take(), ElementsAre("term chief:0"));
  play.Pass(absl::Seconds(9.9));
  EXPECT_THAT(play.Take(), IsEmpty());
  EXPECT_EQ(play.life().tasks().at(kWorker0).finished, end.time);
}

TEST(LifecycleStopTest, ASecondStopKillsImmediately) {
  Play play(Job({Role("worker", 2)}));
  play.Stop();
  play.Take();
  play.Stop(/*immediately=*/true);
  EXPECT_THAT(play.Take(), ElementsAre("kill worker:0", "kill worker:1"));
  play.Exit(kWorker0, 137);
  play.Exit(kWorker1, 137);
  EXPECT_EQ(play.life().state(), job::JobState::kStopped);
}

TEST(LifecycleStopTest, AnImmediateStopKills) {
  Play play(Job({Role("worker")}));
  play.Stop(/*immediately=*/true);
  EXPECT_THAT(play.Take(), Contains("kill worker:0"));
}

TEST(LifecycleStopTest, TwoGracefulStopsAreOne) {
  Play play(Job({Role("worker")}));
  play.Stop();
  play.Take();
  play.Stop();
  EXPECT_THAT(play.Take(), IsEmpty());
}

TEST(LifecycleStopTest, BeforeAnythingWasStarted) {
  const absl::Time now = absl::FromUnixSeconds(1);
  Lifecycle life(Job({Role("worker", 3)}), now);
  life.RequestStop("stopped by the user", false, now);
  EXPECT_TRUE(life.done());
  EXPECT_EQ(life.state(), job::JobState::kStopped);
  EXPECT_THAT(life.TakeActions(), IsEmpty());
}

// The stop arrives when the platform has carried out half of the actions.
TEST(LifecycleStopTest, WhileStartingCancelsPendingStarts) {
  const absl::Time now = absl::FromUnixSeconds(1);
  Lifecycle life(Job({Role("worker", 2)}), now);
  life.TakeActions();
  life.OnStarted(kWorker0, now);
  life.RequestStop("stopped by the user", false, now);
  EXPECT_EQ(life.tasks().at(kWorker1).state, job::TaskState::kStopped);
  EXPECT_FALSE(life.done());
  life.OnEnded(kWorker0, ExitWith(143), now);
  EXPECT_TRUE(life.done());
}

TEST(LifecycleStopTest, WhileATaskIsNotReadyYet) {
  Play play(Job({Role("worker"), Listening("ps")}));
  play.Take();
  play.Stop();
  EXPECT_THAT(play.Take(), UnorderedElementsAre("term ps:0", "term worker:0"));
  play.Ready(kPs);
  EXPECT_THAT(play.Take(), IsEmpty());
  play.Pass(absl::Minutes(2));  // past the start timeout, which no longer applies
  play.Exit(kPs, 143);
  play.Exit(kWorker0, 143);
  EXPECT_EQ(play.life().state(), job::JobState::kStopped);
}

TEST(LifecycleStopTest, DuringTheBackoff) {
  Play play(Job({Role("worker")}));
  play.Exit(kWorker0, 137);
  play.Take();
  play.Stop();
  EXPECT_EQ(play.life().state(), job::JobState::kStopped);
  play.Pass(absl::Minutes(1));
  EXPECT_THAT(play.Take(), IsEmpty());
}

TEST(LifecycleStopTest, WhileTheWholeJobRestarts) {
  Play play(Job({Role("worker", 2)}, {.restart_scope = job::RestartScope::kJob}));
  play.Exit(kWorker0, 137);
  play.Stop();
  EXPECT_FALSE(play.life().done());
  play.Take();
  play.Exit(kWorker1, 143);
  EXPECT_EQ(play.life().state(), job::JobState::kStopped);
  play.Pass(absl::Minutes(1));
  EXPECT_THAT(play.Take(), IsEmpty());
}

TEST(LifecycleStopTest, AfterSuccessShortensTheWaitAndTheVerdictStands) {
  Play play(Job({Role("chief"), Role("worker"), Role("ps")}));
  play.Exit(kChief, 0);
  play.Take();
  play.Stop();
  EXPECT_THAT(play.Take(), ElementsAre("term worker:0"));
  play.Exit(kWorker0, 143);
  EXPECT_THAT(play.Take(), ElementsAre("term ps:0"));
  play.Exit(kPs, 143);
  EXPECT_EQ(play.life().state(), job::JobState::kSucceeded);
}

TEST(LifecycleStopTest, AfterAFailureTheVerdictStands) {
  Play play(Job({Role("chief"), Role("worker")}));
  play.Exit(kWorker0, 1);
  play.Take();
  play.Stop(/*immediately=*/true);
  EXPECT_THAT(play.Take(), ElementsAre("kill chief:0"));
  play.Exit(kChief, 137);
  EXPECT_EQ(play.life().state(), job::JobState::kFailed);
}

TEST(LifecycleStopTest, ATaskThatFailsOnStopIsNotAFailure) {
  Play play(Job({Role("worker")}));
  play.Stop();
  play.Exit(kWorker0, 1);
  EXPECT_EQ(play.life().state(), job::JobState::kStopped);
  EXPECT_EQ(play.StateOf(kWorker0), job::TaskState::kStopped);
}

TEST(LifecycleUpdateTest, RestartsAddsRemovesAndKeeps) {
  Play play(Job({Role("chief"), Role("worker", 2), Role("evaluator")}));
  play.Take();
  const cluster::TaskId evaluator{"evaluator", 0};
  const cluster::TaskId actor{"actor", 0};
  ASSERT_TRUE(play.Update(Job({Role("chief"), Role("worker", 2), Role("actor")}),
                          {.added = {actor},
                           .removed = {evaluator},
                           .restarted = {kWorker0},
                           .kept = {kChief, kWorker1}})
                  .ok());
  EXPECT_THAT(play.Take(),
              UnorderedElementsAre("term evaluator:0", "term worker:0", "start actor:0#0"));
  play.Exit(evaluator, 1);
  EXPECT_FALSE(play.life().tasks().contains(evaluator));
  play.Exit(kWorker0, 143);
  EXPECT_THAT(play.Take(), ElementsAre("start worker:0#1"));
  EXPECT_EQ(play.life().tasks().at(kWorker0).restarts, 0);  // an update does not count as a restart
  EXPECT_EQ(play.life().state(), job::JobState::kRunning);
  EXPECT_THAT(play.Events(), Contains("update||job changed: 1 task restarted, 1 added, 1 removed"));
}

TEST(LifecycleUpdateTest, ATaskInBackoffRestartsAtOnceAndAFinishedOneRunsAgain) {
  Play play(Job({Role("chief"), Role("worker", 2)}));
  play.Exit(kWorker0, 137);
  play.Exit(kWorker1, 0);
  play.Take();
  ASSERT_TRUE(play.Update(Job({Role("chief"), Role("worker", 2)}),
                          {.restarted = {kWorker0, kWorker1}, .kept = {kChief}})
                  .ok());
  EXPECT_THAT(play.Take(), ElementsAre("start worker:0#1", "start worker:1#1"));
  play.Pass(absl::Minutes(1));
  EXPECT_THAT(play.Take(), IsEmpty());
}

TEST(LifecycleUpdateTest, ATaskThatIgnoresTheRequestIsKilledAndThenRestarted) {
  Play play(Job({Role("worker")}));
  ASSERT_TRUE(play.Update(Job({Role("worker")}), {.restarted = {kWorker0}}).ok());
  play.Take();
  play.Pass(absl::Seconds(10));
  EXPECT_THAT(play.Take(), ElementsAre("kill worker:0"));
  play.Exit(kWorker0, 137);
  EXPECT_THAT(play.Take(), ElementsAre("start worker:0#1"));
}

TEST(LifecycleUpdateTest, ATaskThatComesBackBeforeItIsGoneNeverRunsTwice) {
  const job::JobSpec one = Job({Role("worker", 1)});
  const job::JobSpec two = Job({Role("worker", 2)});
  Play play(two);
  ASSERT_TRUE(play.Update(one, {.removed = {kWorker1}, .kept = {kWorker0}}).ok());
  ASSERT_TRUE(play.Update(two, {.added = {kWorker1}, .kept = {kWorker0}}).ok());
  EXPECT_TRUE(play.Runs(kWorker1));
  play.Take();
  play.Exit(kWorker1, 143);
  EXPECT_THAT(play.Take(), ElementsAre("start worker:1#1"));
  EXPECT_EQ(play.StateOf(kWorker1), job::TaskState::kRunning);
}

TEST(LifecycleUpdateTest, PoliciesAloneRestartNothing) {
  Play play(Job({Role("worker")}, {.max_restarts = 0}));
  play.Take();
  ASSERT_TRUE(play.Update(Job({Role("worker")}, {.max_restarts = 5}),
                          {.kept = {kWorker0}, .policies_changed = true})
                  .ok());
  EXPECT_THAT(play.Take(), IsEmpty());
  play.Exit(kWorker0, 137);
  EXPECT_EQ(play.StateOf(kWorker0), job::TaskState::kRestarting);
}

TEST(LifecycleUpdateTest, ADeadlineCountsFromTheStartOfTheJob) {
  Play play(Job({Role("worker")}, {.deadline = absl::Hours(1)}));
  play.Pass(absl::Minutes(50));
  ASSERT_TRUE(play.Update(Job({Role("worker")}, {.deadline = absl::Hours(2)}),
                          {.kept = {kWorker0}, .policies_changed = true})
                  .ok());
  play.Pass(absl::Minutes(69));
  EXPECT_FALSE(play.life().ending());
  play.Pass(absl::Minutes(1));
  EXPECT_TRUE(play.life().ending());
}

TEST(LifecycleUpdateTest, ATaskThatNoLongerNeedsToListenIsUp) {
  Play play(Job({Role("worker"), Listening("ps")}));
  ASSERT_TRUE(play.Update(Job({Role("worker"), Role("ps")}),
                          {.kept = {kWorker0, kPs}, .policies_changed = true})
                  .ok());
  EXPECT_EQ(play.life().state(), job::JobState::kRunning);
}

TEST(LifecycleUpdateTest, IsRefusedWhileTheJobEndsOrRestarts) {
  const UpdatePlan plan{.kept = {kWorker0, kWorker1}, .policies_changed = true};
  Play stopping(Job({Role("worker", 2)}));
  stopping.Stop();
  EXPECT_EQ(stopping.Update(Job({Role("worker", 2)}), plan).code(),
            absl::StatusCode::kFailedPrecondition);

  Play regrouping(Job({Role("worker", 2)}, {.restart_scope = job::RestartScope::kJob}));
  regrouping.Exit(kWorker0, 137);
  EXPECT_EQ(regrouping.Update(Job({Role("worker", 2)}), plan).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(LifecycleUpdateTest, AStopDuringAnUpdateStartsNothingAgain) {
  Play play(Job({Role("worker")}));
  ASSERT_TRUE(play.Update(Job({Role("worker")}), {.restarted = {kWorker0}}).ok());
  play.Stop();
  play.Take();
  play.Exit(kWorker0, 143);
  EXPECT_EQ(play.life().state(), job::JobState::kStopped);
  EXPECT_THAT(play.Take(), IsEmpty());
}

}  // namespace
}  // namespace muster::supervise
