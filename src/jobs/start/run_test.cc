#include "jobs/start/run.h"

#include "gmock/gmock.h"
#include "jobs/control/refresh.h"
#include "jobs/find/lookup.h"
#include "jobs/start/submit.h"
#include "jobs/testing.h"

namespace muster::jobs {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class RunTest : public testing::Test {
 protected:
  absl::StatusOr<RunPlan> Plan(job::Target target = job::LocalTarget(),
                               const std::string& id = "") {
    return PlanRun(*service_, {.submission = service_.Load(kJob, std::move(target)), .job_id = id});
  }
  // Starts the job x and returns its record.
  job::JobRecord Start(job::Target target = job::LocalTarget(), const std::string& id = "") {
    const auto plan = Plan(std::move(target), id);
    EXPECT_TRUE(plan.ok()) << plan.status();
    const auto job = StartPlanned(*service_, *plan);
    EXPECT_TRUE(job.ok() && job->has_value()) << job.status();
    return **job;
  }
  std::vector<job::JobRecord> Recorded() { return (*service_->history())->ListJobs().value(); }
  static std::string Message(const absl::Status& status) { return std::string(status.message()); }

  TestService service_;
};

TEST_F(RunTest, StartsANewJobAndRecordsIt) {
  const auto plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_FALSE(plan->running.has_value());
  EXPECT_THAT(service_.local().submissions, IsEmpty()) << "a plan starts nothing";
  EXPECT_THAT(Recorded(), IsEmpty());

  const auto job = StartPlanned(*service_, *plan);
  ASSERT_TRUE(job.ok()) << job.status();
  ASSERT_THAT(Recorded(), SizeIs(1));
  EXPECT_EQ(Recorded()[0].id, (*job)->id);
  EXPECT_EQ(Recorded()[0].platform, "local");
  EXPECT_EQ(Recorded()[0].tasks, 2);
  EXPECT_THAT(service_.local().submissions, SizeIs(1));
  EXPECT_THAT((*service_->history())->Tasks((*job)->id).value(), SizeIs(2));
}

TEST_F(RunTest, RecordsAJobThatCouldNotStartAsFailed) {
  service_.local().submitted = absl::UnavailableError("no more processes");
  const auto plan = Plan();
  const auto job = StartPlanned(*service_, *plan);
  EXPECT_THAT(Message(job.status()), HasSubstr("could not start: no more processes"));
  ASSERT_THAT(Recorded(), SizeIs(1));
  EXPECT_EQ(Recorded()[0].state, job::JobState::kFailed);
  EXPECT_EQ(Recorded()[0].reason, "no more processes");
  const auto tasks = (*service_->history())->Tasks(Recorded()[0].id).value();
  EXPECT_EQ(tasks[0].reason, "never started");
  service_.local().submitted = absl::OkStatus();
  Start();  // the name is free
}

TEST_F(RunTest, KeepsTheNameOfAJobThatMayHaveStarted) {
  service_.cluster().submitted = absl::UnknownError("no answer");
  const auto plan = Plan(job::KubernetesTarget());
  EXPECT_EQ(StartPlanned(*service_, *plan).status().code(), absl::StatusCode::kUnknown);
  ASSERT_THAT(Recorded(), SizeIs(1));
  EXPECT_EQ(Recorded()[0].state, job::JobState::kPending);
  EXPECT_FALSE(IsNameFree(*service_, "x").value());
}

TEST_F(RunTest, ChangesTheRunningJobOfThatName) {
  const job::JobRecord running = Start();
  service_.local().update.restarted = {{"worker", 1}};
  const auto plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_TRUE(plan->running.has_value());
  EXPECT_EQ(plan->running->job.id, running.id);
  EXPECT_FALSE(plan->update.empty());
  ASSERT_TRUE(ApplyPlanned(*service_, *plan).ok());
  ASSERT_THAT(service_.local().updates, SizeIs(1));
  EXPECT_EQ(service_.local().updates[0].first, running.id);
  EXPECT_THAT(service_.local().submissions, SizeIs(1)) << "no second job";
}

TEST_F(RunTest, RejectsFreshForARunningJobAndForCustomPrograms) {
  RunRequest request{.submission = service_.Load(kJob), .fresh = true};
  EXPECT_EQ(PlanRun(*service_, request).status().code(), absl::StatusCode::kInvalidArgument);
  const std::string trains =
      "name: x\nroles: {worker: {command: 'true'}}\n"
      "train: {model: mlp, steps: 1, data: {format: synthetic}}\n";
  request.submission = service_.Load(trains);
  const auto plan = PlanRun(*service_, request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->submission.resume_step, 0);
  Start();
  EXPECT_THAT(Message(PlanRun(*service_, request).status()), HasSubstr("--fresh is for a new job"));
}

TEST_F(RunTest, RejectsANameThatRunsOnAnotherPlatform) {
  const job::JobRecord running = Start();
  const absl::Status refused = Plan(job::KubernetesTarget()).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(refused), HasSubstr(running.id + " is running on local; stop it first"));
}

TEST_F(RunTest, ReportsALostRaceForTheName) {
  const auto plan = Plan();
  Start();
  const auto job = StartPlanned(*service_, *plan);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_FALSE(job->has_value());
}

TEST_F(RunTest, ReportsUnsupportedSettings) {
  service_.local().limits = {{.what = "image: not here"}};
  ASSERT_TRUE(Plan().ok());
  EXPECT_THAT(service_.notices, Contains("not supported on local: image: not here"));
  service_.local().limits = {{.what = "no such address", .fatal = true}};
  EXPECT_EQ(Message(Plan().status()), "no such address");
  EXPECT_EQ(Plan().status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(RunTest, DoesNotStartAJobThatWouldFail) {
  service_.local().findings = {{platform::Grade::kWarning, "data", "is missing"},
                               {platform::Grade::kMissing, "program of worker", "not found", true}};
  const auto plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(Message(plan->runnable), HasSubstr("program of worker: not found"));
  EXPECT_THAT(service_.notices, Contains("data: is missing"));
  EXPECT_FALSE(StartPlanned(*service_, *plan).ok());
  EXPECT_THAT(Recorded(), IsEmpty());
}

TEST_F(RunTest, AJobOutOfReachKeepsItsName) {
  const job::JobRecord job = Start(job::KubernetesTarget());
  service_.cluster().answer = absl::UnavailableError("no route to host");
  const absl::Status refused = Plan(job::KubernetesTarget()).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(refused), HasSubstr("the name 'x' is taken by " + job.id));
  EXPECT_THAT(Message(refused), HasSubstr("muster jobs rm " + job.id));
}

TEST_F(RunTest, ChoosesIdsOnPlatformsWithChosenIds) {
  EXPECT_EQ(Plan(job::VertexTarget(), "BAD").status().code(), absl::StatusCode::kInvalidArgument);
  const auto plan = Plan(job::VertexTarget());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->submission.id, testing::MatchesRegex("train_[0-9]+_[0-9]+"));
  const job::JobRecord job = Start(job::VertexTarget(), "mine");
  EXPECT_EQ(job.id, "mine");
  EXPECT_THAT(Message(Plan(job::VertexTarget(), "mine").status()), HasSubstr("'mine' is taken"));
}

TEST_F(RunTest, ReusesTheIdOfAJobThatWasNeverCreated) {
  service_.named().submitted = absl::UnavailableError("no bucket");
  const auto first = Plan(job::VertexTarget(), "mine");
  EXPECT_FALSE(StartPlanned(*service_, *first).ok());
  ASSERT_EQ(Recorded()[0].state, job::JobState::kFailed);
  // This process, the submitter, owns the record while it lives.
  EXPECT_FALSE(IsUnmade(*service_, Recorded()[0]));
  EXPECT_THAT(Message(Plan(job::VertexTarget(), "mine").status()), HasSubstr("'mine' is taken"));

  // The same job as a submitter that has died left it.
  job::JobRecord orphan = Recorded()[0];
  orphan.supervisor.reset();
  supervise::JobDir dir(orphan.directory);
  job::Submission left = first->submission;
  job::MutableTargetOf<job::VertexTarget>(left).run.tries = {"first"};
  ASSERT_TRUE(dir.SaveSubmission(left).ok());
  ASSERT_TRUE((*service_->history())->DeleteJob(orphan.id).ok());
  ASSERT_TRUE((*service_->history())->AddJob(orphan, {}).ok());

  service_.named().submitted = absl::OkStatus();
  const auto again = Plan(job::VertexTarget(), "mine");
  ASSERT_TRUE(again.ok()) << again.status();
  const auto& target = std::get<job::VertexTarget>(again->submission.target);
  EXPECT_THAT(target.run.tries, testing::ElementsAre("first"));
  const auto job = StartPlanned(*service_, *again);
  ASSERT_TRUE(job.ok() && job->has_value()) << job.status();
  EXPECT_EQ((*job)->id, "mine");
  EXPECT_THAT(Recorded(), SizeIs(1));
}

TEST_F(RunTest, AcceptsAnUnchangedFileOnAPlatformWithoutUpdates) {
  const job::JobRecord job = Start(job::VertexTarget{.region = "r"}, "mine");
  const auto same = Plan(job::VertexTarget{.region = "r"});
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_TRUE(same->update.empty());
  EXPECT_FALSE(ApplyPlanned(*service_, *same).ok());
  const absl::Status other = Plan(job::VertexTarget{.region = "r", .tier = "BASIC"}).status();
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(other), HasSubstr("a job on Vertex AI cannot be changed"));
}

}  // namespace
}  // namespace muster::jobs
