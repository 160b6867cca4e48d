// Restarts, success and failure. lifecycle_stop_test.cc covers stops and updates.
#include "supervise/lifecycle.h"

#include "gmock/gmock.h"
#include "supervise/lifecycle_testing.h"

namespace muster::supervise {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

TEST(LifecycleTest, StartsEveryTaskImmediately) {
  Play play(Job({Role("chief"), Role("ps"), Role("worker", 2)}));
  EXPECT_THAT(play.Take(), UnorderedElementsAre("start chief:0#0", "start ps:0#0",
                                                "start worker:0#0", "start worker:1#0"));
  EXPECT_EQ(play.life().state(), job::JobState::kRunning);
  EXPECT_THAT(play.Events(), Contains("job||Running: every task is up"));
}

TEST(LifecycleTest, BackoffDoublesUpToItsCapAndTheLimitEndsTheJob) {
  Play play(Job({Role("chief"), Role("worker")},
                {.max_restarts = 4, .backoff = absl::Seconds(1), .max_backoff = absl::Seconds(3)}));
  play.Take();
  for (const int seconds : {1, 2, 3, 3}) {
    play.Exit(kWorker0, 137);
    EXPECT_EQ(play.life().next_timer() - play.now(), absl::Seconds(seconds));
    EXPECT_EQ(play.life().state(), job::JobState::kRestarting);
    play.Pass(absl::Seconds(seconds) - absl::Milliseconds(1));
    EXPECT_FALSE(play.Runs(kWorker0));
    play.Pass(absl::Milliseconds(1));
    EXPECT_TRUE(play.Runs(kWorker0));
  }
  play.Exit(kWorker0, 137);
  play.Exit(kChief, 143);
  EXPECT_EQ(play.life().state(), job::JobState::kFailed);
  EXPECT_EQ(play.life().reason(), "worker:0 failed after 4 restarts: exit code 137");
  EXPECT_EQ(play.life().tasks().at(kWorker0).attempt, 4);
  EXPECT_EQ(play.life().tasks().at(kWorker0).restarts, 4);
}

TEST(LifecycleTest, ManyFastRestartsKeepOneFailureOfEachTask) {
  Play play(Job({Role("worker", 2, job::RestartPolicy::kOnFailure)},
                {.max_restarts = 1000,
                 .backoff = absl::ZeroDuration(),
                 .max_backoff = absl::ZeroDuration()}));
  play.Exit(kWorker1, 9);
  for (int i = 0; i < 1000; ++i) {
    play.Pass(absl::Milliseconds(1));
    play.Exit(kWorker0, 3);
  }
  play.Pass(absl::Milliseconds(1));
  play.Exit(kWorker0, 3);
  play.Exit(kWorker1, 143);
  ASSERT_EQ(play.life().state(), job::JobState::kFailed);
  EXPECT_EQ(play.life().failure()->first->task, kWorker1);
  EXPECT_THAT(play.life().failure()->victims, testing::SizeIs(testing::Le(2)));
}

TEST(LifecycleTest, ATaskIsNotItsOwnVictim) {
  Play play(Job({Role("worker")}, {.max_restarts = 2}));
  play.Exit(kWorker0, 137);
  play.Pass(absl::Seconds(1));
  play.Exit(kWorker0, 137);
  play.Pass(absl::Seconds(2));
  play.Exit(kWorker0, 137);
  ASSERT_EQ(play.life().state(), job::JobState::kFailed);
  EXPECT_EQ(play.life().failure()->first->attempt, 0);
  EXPECT_THAT(play.life().failure()->victims, IsEmpty());
}

TEST(LifecycleTest, AProgramThatCannotStartIsNotTriedAgain) {
  Play play(Job({Role("chief", 1, job::RestartPolicy::kAlways)}));
  play.End(kChief, {.reason = "command not found: 'x'", .may_retry = false});
  EXPECT_EQ(play.life().state(), job::JobState::kFailed);
  EXPECT_EQ(play.life().reason(), "chief:0 failed: command not found: 'x'");
  EXPECT_FALSE(play.life().failure()->first->exit_code.has_value());
}

TEST(LifecycleTest, ARestartAfterSuccessDoesNotBlameAnotherTask) {
  Play play(Job({Role("chief"), Role("worker", 2, job::RestartPolicy::kAlways)}));
  play.Exit(kWorker1, 3);
  play.Exit(kWorker0, 0);
  EXPECT_EQ(play.StateOf(kWorker0), job::TaskState::kRestarting);
  EXPECT_THAT(play.life().tasks().at(kWorker0).reason, Not(HasSubstr("exit code 3")));
}

TEST(LifecycleTest, ScopeJobRestartsEveryTaskOnceAllHaveEnded) {
  Play play(Job({Role("chief"), Role("worker", 2)},
                {.max_restarts = 1, .restart_scope = job::RestartScope::kJob}));
  play.Exit(kWorker1, 0);
  play.Take();
  play.Exit(kWorker0, 139);
  EXPECT_EQ(play.life().state(), job::JobState::kRestarting);
  EXPECT_THAT(play.Take(), ElementsAre("term chief:0"));
  play.Pass(absl::Seconds(5));  // longer than the back-off, but the chief still runs
  EXPECT_THAT(play.Take(), IsEmpty());
  play.Exit(kChief, 143);
  EXPECT_THAT(play.Take(),
              UnorderedElementsAre("start chief:0#1", "start worker:0#1", "start worker:1#1"));
  EXPECT_EQ(play.life().state(), job::JobState::kRunning);
  EXPECT_EQ(play.life().tasks().at(kWorker0).restarts, 1);
  EXPECT_EQ(play.life().tasks().at(kChief).restarts, 0);  // it did not fail itself

  play.Exit(kWorker0, 139);
  play.Exit(kChief, 143);
  play.Exit(kWorker1, 143);
  EXPECT_EQ(play.life().state(), job::JobState::kFailed);
  EXPECT_EQ(play.life().reason(), "worker:0 failed after 1 restart: exit code 139");
}

TEST(LifecycleTest, ScopeJobWaitsForTheBackoff) {
  Play play(Job({Role("worker", 2)},
                {.restart_scope = job::RestartScope::kJob, .backoff = absl::Seconds(7)}));
  play.Exit(kWorker0, 139);
  play.Exit(kWorker1, 143);
  play.Take();
  play.Pass(absl::Seconds(6.9));
  EXPECT_THAT(play.Take(), IsEmpty());
  play.Pass(absl::Seconds(0.1));
  EXPECT_THAT(play.Take(), UnorderedElementsAre("start worker:0#1", "start worker:1#1"));
}

TEST(LifecycleTest, ATaskThatNeverBecomesReadyDoesNotSpinTheJobRestart) {
  job::RoleSpec server = Role("ps");
  server.ready = job::Readiness::kListening;
  Play play(Job({Role("worker"), server}, {.restart_scope = job::RestartScope::kJob,
                                           .start_timeout = absl::Seconds(2),
                                           .stop_grace = absl::Seconds(60)}));
  play.Exit(kWorker0, 137);
  play.Pass(absl::Seconds(30));  // fails if next_timer stays in the past
  EXPECT_EQ(play.life().state(), job::JobState::kRestarting);
}

TEST(LifecycleTest, TheJobSucceedsWithTheChief) {
  Play play(Job({Role("chief"), Role("worker", 2)}));
  play.Exit(kWorker0, 0);
  play.Exit(kWorker1, 0);
  EXPECT_FALSE(play.life().ending());
  play.Exit(kChief, 0);
  EXPECT_EQ(play.life().state(), job::JobState::kSucceeded);
  EXPECT_FALSE(play.life().failure().has_value());
}

TEST(LifecycleTest, WithoutAChiefWorker0Decides) {
  Play play(Job({Role("worker", 2)}));
  play.Exit(kWorker1, 0);
  EXPECT_FALSE(play.life().ending());
  play.Exit(kWorker0, 0);
  EXPECT_EQ(play.life().state(), job::JobState::kSucceeded);
}

TEST(LifecycleTest, AllWorkersMeansEveryTaskThatTrains) {
  Play play(Job({Role("chief"), Role("worker", 2), Role("ps"), Role("evaluator"), Role("actor")},
                {.success = job::SuccessPolicy::kAllWorkers}));
  play.Exit(kChief, 0);
  play.Exit(kWorker0, 0);
  play.Exit(kWorker1, 0);
  EXPECT_FALSE(play.life().ending());
  play.Exit({"actor", 0}, 0);
  EXPECT_TRUE(play.life().ending());
}

TEST(LifecycleTest, ServicesNeverDecideSuccess) {
  Play play(Job({Role("worker"), Role("ps"), Role("evaluator")}));
  play.Exit(kPs, 0);
  play.Exit({"evaluator", 0}, 0);
  EXPECT_FALSE(play.life().ending());
  play.Exit(kWorker0, 0);
  EXPECT_EQ(play.life().state(), job::JobState::kSucceeded);
}

TEST(LifecycleTest, ServersAloneRunUntilTheyHaveAllEnded) {
  Play play(Job({Role("ps", 2)}, {.success = job::SuccessPolicy::kAllWorkers}));
  EXPECT_FALSE(play.life().ending());
  play.Exit(kPs, 0);
  EXPECT_FALSE(play.life().ending());
  play.Exit({"ps", 1}, 0);
  EXPECT_EQ(play.life().state(), job::JobState::kSucceeded);
}

TEST(LifecycleTest, AfterSuccessOthersMayFinishAndPsEndsLast) {
  Play play(Job({Role("chief"), Role("worker"), Role("ps")}));
  play.Take();
  play.Exit(kChief, 0);
  EXPECT_THAT(play.Take(), IsEmpty());
  EXPECT_EQ(play.life().state(), job::JobState::kRunning);
  play.Pass(absl::Seconds(5));
  play.Exit(kWorker0, 0);
  EXPECT_THAT(play.Take(), ElementsAre("term ps:0"));
  play.Exit(kPs, 143);
  EXPECT_EQ(play.life().state(), job::JobState::kSucceeded);
  EXPECT_EQ(play.StateOf(kWorker0), job::TaskState::kSucceeded);
  EXPECT_EQ(play.StateOf(kPs), job::TaskState::kStopped);
}

TEST(LifecycleTest, WhenTheFinishGraceIsOverTheOthersAreEnded) {
  Play play(Job({Role("chief"), Role("worker"), Role("ps")},
                {.stop_grace = absl::Seconds(10), .finish_grace = absl::Seconds(30)}));
  play.Take();
  play.Exit(kChief, 0);
  play.Pass(absl::Seconds(30));
  EXPECT_THAT(play.Take(), ElementsAre("term worker:0"));
  play.Pass(absl::Seconds(10));
  EXPECT_THAT(play.Take(), ElementsAre("kill worker:0"));
  play.Exit(kWorker0, 137);
  EXPECT_THAT(play.Take(), ElementsAre("term ps:0"));
  play.Exit(kPs, 0);
  EXPECT_EQ(play.life().state(), job::JobState::kSucceeded);
  EXPECT_EQ(play.StateOf(kPs), job::TaskState::kSucceeded);
  EXPECT_EQ(play.StateOf(kWorker0), job::TaskState::kStopped);
}

TEST(LifecycleTest, ATaskThatGetsReadyAfterSuccessHasTheFinishGraceToo) {
  job::RoleSpec server = Role("ps");
  server.ready = job::Readiness::kListening;
  job::RoleSpec late = Role("worker");
  late.ready = job::Readiness::kListening;
  Play play(Job({Role("chief"), late, server}));
  play.Exit(kChief, 0);
  play.Take();
  play.Ready(kWorker0);
  play.Ready(kPs);
  EXPECT_THAT(play.Take(), IsEmpty());
  play.Exit(kWorker0, 0);
  EXPECT_THAT(play.Take(), ElementsAre("term ps:0"));
}

TEST(LifecycleTest, AFailureAfterSuccessDoesNotChangeTheVerdict) {
  Play play(Job({Role("chief"), Role("worker")}));
  play.Exit(kChief, 0);
  play.Exit(kWorker0, 1);
  EXPECT_EQ(play.life().state(), job::JobState::kSucceeded);
  EXPECT_EQ(play.StateOf(kWorker0), job::TaskState::kFailed);
}

TEST(LifecycleTest, AFailureEndsEveryTaskAndTheFirstIsReported) {
  Play play(Job({Role("chief"), Role("worker", 2), Role("ps")}));
  play.Take();
  AttemptEnd end = ExitWith(1);
  end.advice = "fix it";
  end.last_lines = {"ValueError: bad"};
  play.End(kWorker1, end);
  EXPECT_THAT(play.Take(), UnorderedElementsAre("term chief:0", "term ps:0", "term worker:0"));
  EXPECT_FALSE(play.life().done());
  play.Pass(absl::Milliseconds(300));
  play.Exit(kChief, 7);  // any exit after a request to end is not a failure
  play.Exit(kWorker0, 143);
  play.Exit(kPs, 0);
  EXPECT_EQ(play.life().state(), job::JobState::kFailed);
  EXPECT_EQ(play.life().reason(), "worker:1 failed: exit code 1");
  const job::FailureReport& report = *play.life().failure();
  EXPECT_EQ(report.summary, "worker:1 failed: exit code 1");
  ASSERT_TRUE(report.first.has_value());
  EXPECT_EQ(report.first->task, kWorker1);
  EXPECT_EQ(report.first->exit_code, 1);
  EXPECT_EQ(report.first->advice, "fix it");
  EXPECT_THAT(report.first->last_lines, ElementsAre("ValueError: bad"));
  EXPECT_THAT(report.victims, ElementsAre("chief:0, ps:0, worker:0: stopped by muster"));
}

// A worker is killed and restarts; its peer fails permanently as a consequence.
TEST(LifecycleTest, TheEarliestUnrecoveredFailureIsTheCause) {
  Play play(Job({Role("worker", 2)}));
  play.Exit(kWorker1, 137);
  play.Pass(absl::Milliseconds(500));
  play.Exit(kWorker0, 1);
  EXPECT_EQ(play.life().state(), job::JobState::kFailed);
  EXPECT_EQ(play.life().failure()->first->task, kWorker1);
  EXPECT_THAT(play.life().failure()->victims, Contains("worker:0: exit code 1, 0.5 s later"));
  EXPECT_EQ(play.life().reason(), "worker:1 failed: exit code 137");
  EXPECT_EQ(play.life().failure()->summary, play.life().reason());
  EXPECT_THAT(play.Events(), Contains("job||Failed: worker:1 failed: exit code 137"));
  EXPECT_EQ(play.life().failure()->not_restarted,
            "worker:0: exit code 1 is final under `restart: exit-code`; `restart: on-failure` "
            "retries it");
}

TEST(LifecycleTest, AVerdictWhileTheJobEndsNamesTheFirstFailureToo) {
  Play play(Job({Role("chief"), Role("worker", 2)}));
  play.Exit(kWorker1, 137);
  play.Exit(kWorker0, 1);
  EXPECT_FALSE(play.life().done());
  EXPECT_EQ(play.life().reason(), "worker:1 failed: exit code 137");
}

TEST(LifecycleTest, ADeadlineStaysTheReasonAfterAFailure) {
  Play play(Job({Role("worker", 2)}, {.backoff = absl::Seconds(5), .deadline = absl::Seconds(3)}));
  play.Exit(kWorker1, 137);
  play.Pass(absl::Seconds(3));
  play.Exit(kWorker0, 143);
  ASSERT_EQ(play.life().state(), job::JobState::kFailed);
  EXPECT_EQ(play.life().reason(), "deadline of 3s passed");
  EXPECT_EQ(play.life().failure()->first->task, kWorker1);
}

TEST(LifecycleTest, AJobWithAllTasksUpForAWhileHasRecovered) {
  Play play(Job({Role("worker", 2)}));
  play.Exit(kWorker1, 137);
  play.Pass(absl::Seconds(1) + absl::Seconds(10));
  play.Exit(kWorker0, 1);
  play.Exit(kWorker1, 143);
  EXPECT_EQ(play.life().failure()->first->task, kWorker0);
}

TEST(LifecycleTest, AJobWithAllTasksUpBrieflyHasNotRecovered) {
  Play play(Job({Role("worker", 2)}));
  play.Exit(kWorker1, 137);
  play.Pass(absl::Seconds(1) + absl::Seconds(9.9));
  play.Exit(kWorker0, 1);
  play.Exit(kWorker1, 143);
  EXPECT_EQ(play.life().failure()->first->task, kWorker1);
}

TEST(LifecycleTest, TheStartTimeoutNamesTheTaskThatDoesNotListen) {
  job::RoleSpec server = Role("ps");
  server.ready = job::Readiness::kListening;
  Play play(Job({Role("worker"), server}, {.start_timeout = absl::Seconds(20)}));
  EXPECT_EQ(play.life().state(), job::JobState::kStarting);
  play.Pass(absl::Seconds(19.9));
  EXPECT_FALSE(play.life().ending());
  play.Pass(absl::Seconds(0.1));
  EXPECT_TRUE(play.life().ending());
  play.Exit(kPs, 143);
  play.Exit(kWorker0, 143);
  EXPECT_EQ(play.life().state(), job::JobState::kFailed);
  EXPECT_EQ(play.life().reason(),
            "ps:0 did not start within 20s: its process runs but does not listen on its port");
  EXPECT_EQ(play.life().failure()->first->task, kPs);
}

TEST(LifecycleTest, TheStartTimeoutNamesAllMissingTasks) {
  job::RoleSpec server = Role("ps", 10);
  server.ready = job::Readiness::kListening;
  Play play(Job({Role("worker"), server}, {.start_timeout = absl::Seconds(20)}));
  play.Ready({"ps", 3});
  play.Pass(absl::Seconds(20));
  EXPECT_EQ(
      play.life().reason(),
      "ps:0, ps:1, ps:2, ps:4, ps:5, ps:6, ps:7, ps:8 and 1 more did not start within 20s: their "
      "processes run but do not listen on their ports");
}

TEST(LifecycleTest, ATaskThatListensInTimeIsUp) {
  job::RoleSpec server = Role("ps");
  server.ready = job::Readiness::kListening;
  Play play(Job({Role("worker"), server}));
  play.Pass(absl::Seconds(59));
  play.Ready(kPs);
  EXPECT_EQ(play.life().state(), job::JobState::kRunning);
  play.Pass(absl::Hours(1));
  EXPECT_FALSE(play.life().ending());
}

TEST(LifecycleTest, TheDeadlineFailsTheJob) {
  Play play(Job({Role("worker")}, {.deadline = absl::Hours(2)}));
  play.Pass(absl::Hours(2) - absl::Seconds(1));
  EXPECT_FALSE(play.life().ending());
  play.Pass(absl::Seconds(1));
  play.Exit(kWorker0, 143);
  EXPECT_EQ(play.life().state(), job::JobState::kFailed);
  EXPECT_EQ(play.life().reason(), "deadline of 2h passed");
}

TEST(LifecycleTest, ATakenPortIsReplacedThreeTimesWithoutCountingARestart) {
  Play play(Job(
      {Role("chief", 1, job::RestartPolicy::kNever), Role("ps", 1, job::RestartPolicy::kNever)}));
  AttemptEnd taken = ExitWith(1);
  taken.port_taken = true;
  for (int i = 1; i <= 3; ++i) {
    play.Take();
    play.End(kPs, taken);
    EXPECT_THAT(play.Take(), UnorderedElementsAre("move ps:0", "term chief:0"));
    play.Exit(kChief, 143);
    EXPECT_THAT(play.Take(), UnorderedElementsAre(absl::StrCat("start chief:0#", i),
                                                  absl::StrCat("start ps:0#", i)));
  }
  EXPECT_EQ(play.life().tasks().at(kPs).restarts, 0);
  play.End(kPs, taken);
  play.Exit(kChief, 143);
  EXPECT_EQ(play.life().state(), job::JobState::kFailed);
}

TEST(LifecycleTest, AStalledTaskIsKilledAndRestartedByPolicy) {
  Play play(Job({Role("worker")}, {.stall = job::StallPolicy{absl::Minutes(5)}}));
  play.Take();
  play.Stall(kWorker0, "stalled: no output for 5m");
  play.Pass(absl::Seconds(1));
  EXPECT_THAT(play.Take(), ElementsAre("kill worker:0"));
  play.Exit(kWorker0, 137);
  EXPECT_EQ(play.StateOf(kWorker0), job::TaskState::kRestarting);
  EXPECT_THAT(play.life().tasks().at(kWorker0).reason, HasSubstr("stalled: no output for 5m"));
  play.Pass(absl::Seconds(1));
  EXPECT_TRUE(play.Runs(kWorker0));
}

TEST(LifecycleTest, AStallThatMayNotRestartFailsTheJobWithTheStallAsItsCause) {
  Play play(Job({Role("worker", 1, job::RestartPolicy::kNever)},
                {.stall = job::StallPolicy{absl::Minutes(5)}}));
  play.Stall(kWorker0, "stalled: no output for 5m");
  play.Exit(kWorker0, 137);
  EXPECT_EQ(play.life().reason(), "worker:0 failed: stalled: no output for 5m");
}

TEST(LifecycleTest, ATaskThatSucceedsJustWhenItIsFoundStalledHasSucceeded) {
  Play play(Job({Role("worker")}, {.stall = job::StallPolicy{absl::Minutes(5)}}));
  play.Stall(kWorker0, "stalled");
  play.Exit(kWorker0, 0);
  EXPECT_EQ(play.life().state(), job::JobState::kSucceeded);
}

TEST(LifecycleTest, AStallCanBeReportedOnly) {
  Play play(Job({Role("worker")},
                {.stall = job::StallPolicy{absl::Minutes(5), job::StallAction::kReport}}));
  play.Take();
  play.Stall(kWorker0, "stalled: no output for 5m");
  play.Pass(absl::Minutes(1));
  EXPECT_THAT(play.Take(), IsEmpty());
  EXPECT_EQ(play.StateOf(kWorker0), job::TaskState::kRunning);
  EXPECT_EQ(play.life().tasks().at(kWorker0).reason, "stalled: no output for 5m");
}

job::JobSpec DynamicJob(std::vector<job::RoleSpec> roles, job::SuccessPolicy success) {
  job::JobSpec spec = Job(std::move(roles), {.success = success});
  spec.dynamic_workers = true;
  return spec;
}

TEST(LifecycleTest, AJobWithDynamicWorkersContinuesWithoutAFailedWorker) {
  Play play(DynamicJob({Role("chief"), Role("worker", 2)}, job::SuccessPolicy::kChief));
  play.Exit(kWorker1, 1);
  EXPECT_EQ(play.StateOf(kWorker1), job::TaskState::kFailed);
  EXPECT_EQ(play.life().state(), job::JobState::kRunning);
  play.Exit(kChief, 0);
  play.Exit(kWorker0, 0);
  EXPECT_EQ(play.life().state(), job::JobState::kSucceeded);
}

TEST(LifecycleTest, AJobWithDynamicWorkersFailsWithTheOneThatDecides) {
  Play play(DynamicJob({Role("worker", 2), Role("ps")}, job::SuccessPolicy::kChief));
  play.Exit(kWorker0, 1);
  EXPECT_TRUE(play.life().ending());
}

TEST(LifecycleTest, AJobWithDynamicWorkersFailsWhenNoTaskCanSucceed) {
  Play play(DynamicJob({Role("worker", 2), Role("ps")}, job::SuccessPolicy::kAllWorkers));
  play.Exit(kWorker0, 1);
  EXPECT_FALSE(play.life().ending());
  play.Exit(kWorker1, 0);
  EXPECT_TRUE(play.life().ending());
  play.Exit(kPs, 0);
  EXPECT_EQ(play.life().state(), job::JobState::kFailed);
  EXPECT_EQ(play.life().failure()->first->task, kWorker0);
}

}  // namespace
}  // namespace muster::supervise
