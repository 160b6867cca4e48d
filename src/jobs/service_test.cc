// Finding, refreshing, stopping, resuming, evaluating and removing jobs.
#include "jobs/service.h"

#include <filesystem>

#include "gmock/gmock.h"
#include "jobs/control/notebook.h"
#include "jobs/control/refresh.h"
#include "jobs/control/remove.h"
#include "jobs/control/stop.h"
#include "jobs/control/wait.h"
#include "jobs/find/lookup.h"
#include "jobs/start/evaluate.h"
#include "jobs/start/resume.h"
#include "jobs/start/run.h"
#include "jobs/start/submit.h"
#include "jobs/testing.h"

namespace muster::jobs {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class ServiceTest : public testing::Test {
 protected:
  job::JobRecord Start(job::Target target = job::LocalTarget(), const std::string& text = kJob) {
    const auto plan = PlanRun(*service_, {.submission = service_.Load(text, std::move(target))});
    EXPECT_TRUE(plan.ok()) << plan.status();
    const auto job = StartPlanned(*service_, *plan);
    EXPECT_TRUE(job.ok() && job->has_value()) << job.status();
    return **job;
  }
  // Starts a job on this machine whose supervisor then reports its end.
  job::JobRecord StartFinished() {
    job::JobRecord job = Start();
    job.state = job::JobState::kSucceeded;
    job.finished = absl::Now();
    EXPECT_TRUE((*service_->history())->Apply({.job = job}).ok());
    return job;
  }
  job::JobRecord Recorded(const std::string& id) {
    return (*service_->history())->GetJob(id).value();
  }
  static std::string Message(const absl::Status& status) { return std::string(status.message()); }

  TestService service_;
};

TEST_F(ServiceTest, AnUnknownPlatformIsReportedWithTheKnownOnes) {
  const absl::Status unknown = service_->platform("kubernets").status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(unknown), HasSubstr("local, kubernetes, vertex"));
  EXPECT_THAT(Message(unknown), HasSubstr("did you mean 'kubernetes'?"));
}

TEST_F(ServiceTest, AJobOfALaterVersionsPlatformDoesNotHideTheOthers) {
  const job::JobRecord job = Start();
  const job::JobRecord later{.id = "later-1",
                             .name = "later",
                             .platform = "slurm",
                             .state = job::JobState::kRunning,
                             .created = absl::Now(),
                             .directory = job.directory};
  ASSERT_TRUE((*service_->history())->Apply({.job = later}).ok());
  const auto jobs = ListJobs(*service_, {});
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_THAT(*jobs, SizeIs(2));
  EXPECT_EQ(Recorded("later-1").state, job::JobState::kRunning);
}

TEST_F(ServiceTest, ALostSupervisorMeansFailure) {
  job::JobRecord job = Start();
  service_.local().liveness = platform::Liveness::kGone;
  ASSERT_TRUE(Refresh(*service_, job).ok());
  EXPECT_EQ(job.state, job::JobState::kFailed);
  EXPECT_THAT(job.reason, HasSubstr("never started"));
  EXPECT_EQ(Recorded(job.id).state, job::JobState::kFailed);
  const auto tasks = (*service_->history())->Tasks(job.id);
  ASSERT_TRUE(tasks.ok()) << tasks.status();
  for (const job::TaskRecord& task : *tasks) {
    EXPECT_EQ(task.state, job::TaskState::kLost);
  }
  EXPECT_EQ(service_.local().kills, 1);
  EXPECT_THAT(service_.notices, Contains("killed 1 process left behind by " + job.id));
  ASSERT_TRUE(Refresh(*service_, job).ok());
  EXPECT_EQ(service_.local().kills, 1) << "a finished job has nothing left";
}

TEST_F(ServiceTest, APlatformThatDoesNotAnswerLeavesTheRecordAlone) {
  job::JobRecord job = Start(job::KubernetesTarget());
  ASSERT_EQ(job.state, job::JobState::kRunning);
  service_.cluster().answer = absl::UnavailableError("connection refused");
  ASSERT_TRUE(Refresh(*service_, job).ok());
  EXPECT_EQ(job.state, job::JobState::kUnreachable);
  EXPECT_EQ(job.reason, "connection refused");
  EXPECT_TRUE(IsOutOfReach(*service_, job));
  EXPECT_EQ(Recorded(job.id).state, job::JobState::kRunning);
  service_.cluster().answer = absl::OkStatus();
  service_.cluster().state = job::JobState::kSucceeded;
  ASSERT_TRUE(Reload(*service_, job).ok());
  EXPECT_EQ(job.state, job::JobState::kSucceeded);
  EXPECT_EQ(Recorded(job.id).state, job::JobState::kSucceeded);
}

TEST_F(ServiceTest, FindsJobsOfOtherClientsAndLeavesTheirNamesFree) {
  job::Submission theirs =
      service_.Load(kJob, job::KubernetesTarget{.ns = "ml", .object = {.name = "x"}});
  theirs.id = "x-abcde";
  service_.cluster().others["x"] = theirs;
  const Selection there{.platform = "kubernetes", .target = job::KubernetesTarget()};
  const auto found = FindJob(*service_, "x", there);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->id, "x-abcde");
  EXPECT_EQ(found->state, job::JobState::kRunning);
  EXPECT_TRUE(IsForeignJob(*found));
  EXPECT_FALSE(RunningJob(*service_, "x").value().has_value());
  EXPECT_TRUE(IsNameFree(*service_, "x").value());
  ASSERT_TRUE(FindJob(*service_, "x", there).ok()) << "a second look finds the same record";
  EXPECT_THAT((*service_->history())->ListJobs().value(), SizeIs(1));
  EXPECT_TRUE(absl::IsNotFound(FindJob(*service_, "y", there).status()));
}

TEST_F(ServiceTest, AnOptionMustFitThePlatformOfTheJob) {
  Start();
  const Selection with_option{.option = "--namespace", .option_platform = "kubernetes"};
  const absl::Status refused = FindJob(*service_, "x", with_option).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(refused), HasSubstr("--namespace is for jobs on Kubernetes, and x-"));
  const job::JobRecord there =
      Start(job::KubernetesTarget{.ns = "ml"}, "name: a\nroles: {w: {command: 'true'}}\n");
  Selection in_cluster{.target = job::KubernetesTarget{.ns = "ml"},
                       .option = "--namespace",
                       .option_platform = "kubernetes"};
  EXPECT_TRUE(FindJob(*service_, there.id, in_cluster).ok());
  EXPECT_THAT(Message(FindJob(*service_, "unknown", in_cluster).status()),
              HasSubstr("add --on kubernetes to look for it there"));
  in_cluster.target = job::KubernetesTarget{.ns = "other"};
  EXPECT_THAT(Message(FindJob(*service_, there.id, in_cluster).status()),
              HasSubstr("--namespace does not match: " + there.id + " is in namespace 'ml'"));
}

TEST_F(ServiceTest, ListsTheHistoryOrThePlatform) {
  const job::JobRecord finished = StartFinished();
  const job::JobRecord running = Start(job::KubernetesTarget());
  EXPECT_THAT(ListJobs(*service_, {}).value(), SizeIs(2));
  const auto active = ListJobs(*service_, {}, {.only_active = true}).value();
  ASSERT_THAT(active, SizeIs(1));
  EXPECT_EQ(active[0].id, running.id);
  const auto here = ListJobs(*service_, {.platform = "local"}).value();
  ASSERT_THAT(here, SizeIs(1));
  EXPECT_EQ(here[0].id, finished.id);
  service_.cluster().listed = {{.id = "another", .state = job::JobState::kSucceeded}};
  const Selection there{.platform = "kubernetes", .target = job::KubernetesTarget()};
  EXPECT_EQ(ListJobs(*service_, there).value()[0].id, "another");
  EXPECT_THAT(ListJobs(*service_, there, {.only_active = true}).value(), IsEmpty());
}

TEST_F(ServiceTest, TheLatestJobPrefersRunningJobs) {
  EXPECT_TRUE(absl::IsNotFound(LatestJob(*service_).status()));
  const job::JobRecord running =
      Start(job::KubernetesTarget(), "name: a\nroles: {w: {command: 'true'}}\n");
  StartFinished();
  EXPECT_EQ(LatestJob(*service_)->id, running.id);
}

TEST_F(ServiceTest, StopsAJobAndWaits) {
  job::JobRecord job = Start(job::KubernetesTarget());
  service_.cluster().state = job::JobState::kStopped;
  ASSERT_TRUE(StopJob(*service_, job, /*immediately=*/true).ok());
  EXPECT_EQ(job.state, job::JobState::kStopped);
  EXPECT_THAT(service_.cluster().stops, ElementsAre(std::pair(job.id, true)));
}

TEST_F(ServiceTest, AStopThatFailsIsNoErrorIfTheJobHasEnded) {
  job::JobRecord job = Start(job::KubernetesTarget());
  service_.cluster().stopped = absl::NotFoundError("no such TFJob");
  EXPECT_EQ(Message(StopJob(*service_, job, false)), "no such TFJob");
  EXPECT_EQ(job.state, job::JobState::kRunning);
  service_.cluster().state = job::JobState::kSucceeded;
  EXPECT_TRUE(StopJob(*service_, job, false).ok());
  EXPECT_EQ(job.state, job::JobState::kSucceeded);
}

TEST_F(ServiceTest, ResumesAFinishedJobOnce) {
  const job::JobRecord running =
      Start(job::KubernetesTarget(), "name: a\nroles: {w: {command: 'true'}}\n");
  EXPECT_THAT(Message(PlanResume(*service_, running, std::nullopt).status()),
              HasSubstr("stop it before you resume it"));
  const job::JobRecord finished = StartFinished();
  const auto planned = PlanResume(*service_, finished, 700);
  ASSERT_TRUE(planned.ok()) << planned.status();
  const auto resumed = StartResumed(*service_, *planned);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(resumed->resumed_from, finished.id);
  EXPECT_NE(resumed->id, finished.id);
  EXPECT_EQ(service_.local().submissions.back().resume_step, 700);
  EXPECT_THAT(Message(PlanResume(*service_, finished, std::nullopt).status()),
              HasSubstr("a later run, " + resumed->id));
  EXPECT_EQ(StartResumed(*service_, *planned).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(ServiceTest, RemovesFinishedAndUnreachableJobs) {
  const job::JobRecord finished = StartFinished();
  ASSERT_TRUE(FindRemovable(*service_, finished.id, false).ok());
  ASSERT_TRUE(RemoveJob(*service_, finished.id).ok());
  EXPECT_FALSE(std::filesystem::exists(finished.directory));
  const job::JobRecord here = Start();
  for (const bool force : {false, true}) {
    EXPECT_THAT(Message(FindRemovable(*service_, here.id, force).status()),
                HasSubstr("is supervised on this machine"));
  }
  const job::JobRecord there =
      Start(job::KubernetesTarget(), "name: a\nroles: {w: {command: 'true'}}\n");
  EXPECT_THAT(Message(FindRemovable(*service_, there.id, false).status()), HasSubstr("reachable"));
  EXPECT_TRUE(FindRemovable(*service_, there.id, /*force=*/true).ok());
  service_.cluster().answer = absl::UnavailableError("down");
  ASSERT_TRUE(FindRemovable(*service_, there.id, false).ok());
  EXPECT_FALSE(IsNameFree(*service_, "a").value());
  ASSERT_TRUE(RemoveJob(*service_, there.id).ok());
  EXPECT_FALSE(std::filesystem::exists(there.directory));
  EXPECT_TRUE(IsNameFree(*service_, "a").value());
}

TEST_F(ServiceTest, ListsTheJobsThatMatch) {
  const auto ids = [this](const JobQuery& query) {
    std::vector<std::string> found;
    const auto jobs = ListJobs(*service_, {}, query);
    for (const job::JobRecord& job : jobs.value()) found.push_back(job.id);
    return found;
  };
  const job::JobRecord old = StartFinished();
  const absl::Time between = absl::Now();
  const job::JobRecord other =
      Start(job::KubernetesTarget(), "name: xy\nroles: {w: {command: 'true'}}\n");
  EXPECT_THAT(ids({.name = "x"}), ElementsAre(old.id));
  EXPECT_THAT(ids({.name = "x*"}), ElementsAre(other.id, old.id));
  EXPECT_THAT(ids({.since = between}), ElementsAre(other.id));
  EXPECT_THAT(ids({.limit = 1}), ElementsAre(other.id));
  EXPECT_THAT(ids({.states = {job::JobState::kSucceeded}}), ElementsAre(old.id));
  service_.cluster().state = job::JobState::kSucceeded;
  EXPECT_THAT(ids({.states = {job::JobState::kRunning}}), IsEmpty()) << "found by the refresh";
  EXPECT_THAT(ids({.states = {job::JobState::kSucceeded}, .limit = 1}), ElementsAre(other.id));
}

TEST_F(ServiceTest, StatesAreNamedInAnyCase) {
  EXPECT_THAT(
      ParseStates({"running,Failed", "STOPPED"}).value(),
      ElementsAre(job::JobState::kRunning, job::JobState::kFailed, job::JobState::kStopped));
  const absl::Status unknown = ParseStates({"runing"}).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(unknown), HasSubstr("did you mean 'Running'?"));
}

TEST_F(ServiceTest, ActiveJobsAreOwnOnes) {
  StartFinished();
  const job::JobRecord here = Start();
  job::Submission theirs =
      service_.Load(kJob, job::KubernetesTarget{.ns = "ml", .object = {.name = "x"}});
  theirs.id = "x-abcde";
  service_.cluster().others["x"] = theirs;
  ASSERT_TRUE(
      FindJob(*service_, "x", {.platform = "kubernetes", .target = job::KubernetesTarget()}).ok());
  const auto active = ActiveJobs(*service_, "").value();
  ASSERT_THAT(active, SizeIs(1));
  EXPECT_EQ(active[0].id, here.id);
  EXPECT_THAT(ActiveJobs(*service_, "kubernetes").value(), IsEmpty());
  EXPECT_EQ(ActiveJobs(*service_, "nowhere").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ServiceTest, WaitsForTheEndOfAJob) {
  job::JobRecord finished = StartFinished();
  EXPECT_TRUE(WaitForJob(*service_, finished, absl::InfinitePast()).ok());
  job::JobRecord job = Start(job::KubernetesTarget(), "name: a\nroles: {w: {command: 'true'}}\n");
  const absl::Status late = WaitForJob(*service_, job, absl::Now() + absl::Milliseconds(100));
  EXPECT_TRUE(absl::IsDeadlineExceeded(late));
  EXPECT_THAT(Message(late), HasSubstr(job.id + " is still Running"));
  // The platform is silent at first.
  service_.cluster().answer = absl::UnavailableError("down");
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(WaitForJob(*service_, job, absl::Now() + absl::Milliseconds(100))));
  EXPECT_THAT(service_.notices, Contains("lost contact with " + job.id + ": down; waiting"));
  service_.cluster().answer = absl::OkStatus();
  service_.cluster().state = job::JobState::kFailed;
  ASSERT_TRUE(WaitForJob(*service_, job, absl::Now() + absl::Minutes(1)).ok());
  EXPECT_EQ(job.state, job::JobState::kFailed);
}

TEST_F(ServiceTest, AJobWhoseEndCannotBeSeenIsNotWaitedFor) {
  job::JobRecord job = Start();
  service_.local().liveness = platform::Liveness::kUnknown;
  EXPECT_EQ(WaitForJob(*service_, job, absl::InfiniteFuture()).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(ServiceTest, PrunesTheOldestFinishedJobs) {
  const job::JobRecord oldest = StartFinished();
  const job::JobRecord newest = StartFinished();
  const auto old = FinishedBeyond(*service_, 1).value();
  ASSERT_THAT(old, SizeIs(1));
  EXPECT_EQ(old[0].id, oldest.id);
}

TEST_F(ServiceTest, EvaluatesOnPlatformsThatSupportIt) {
  const auto refused = PlanEvaluation(*service_, {.target = job::KubernetesTarget()}, "");
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(refused.status()), HasSubstr("cannot evaluate models on kubernetes"));
  const auto plan = PlanEvaluation(
      *service_, {.train_folder = "gs://b/r", .target = job::VertexTarget()}, "mine");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->result, "gs://b/eval/mine.json");
  const auto job = StartEvaluation(*service_, *plan);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->id, "mine");
  EXPECT_EQ(StartEvaluation(*service_, *plan).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(ServiceTest, FindsTheNotebookOfAJob) {
  EXPECT_EQ(NotebookPlatform(*service_), "kubernetes");
  EXPECT_TRUE(CheckHasNotebooks(*service_, "kubernetes").ok());
  const auto access = FindNotebook(*service_, service_.Load(kJob, job::KubernetesTarget()));
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->name, "notebook of x");
  const absl::Status none = FindNotebook(*service_, service_.Load(kJob)).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(none), HasSubstr("jobs on local have no notebooks; use --on kubernetes"));
}

TEST_F(ServiceTest, AnInvalidFileOrDirectoryIsRejected) {
  const auto bad = LoadSubmission(*service_, {{"-", "name: [\n"}}, "/");
  EXPECT_EQ(bad.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(bad.status()), HasSubstr("standard input:"));
  const auto dir = LoadSubmission(*service_, {{"job.yaml", kJob}}, "/\xff");
  EXPECT_THAT(Message(dir.status()), HasSubstr("not valid UTF-8"));
}

}  // namespace
}  // namespace muster::jobs
