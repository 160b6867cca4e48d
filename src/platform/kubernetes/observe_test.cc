#include "platform/kubernetes/observe.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/failure.h"
#include "job/testing.h"

namespace muster::kubernetes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr absl::Time kNow = absl::FromUnixSeconds(1'777'636'800);

class ObserveTest : public testing::Test {
 protected:
  ObserveTest() {
    submission_.id = "mnist-abcde";
    submission_.spec = job::MustParse(
        "name: mnist\nimage: tf:1\nroles:\n  ps: {command: serve}\n  worker: {replicas: 2, "
        "command: train}\n");
    submission_.target = job::KubernetesTarget{.ns = "ml"};
    record_.id = submission_.id;
    record_.created = kNow;
    for (const cluster::TaskId& task : submission_.spec.Tasks()) tasks_.push_back({.id = task});
  }

  // Compares an observation and applies the change as the history would.
  std::optional<job::StateChange> See(const std::optional<Json>& job, std::vector<Json> pods = {}) {
    const auto lines = [](const cluster::TaskId&) {
      return std::vector<std::string>{"last words"};
    };
    auto change = Compare({record_, tasks_, submission_, lines},
                          {.job = job, .pods = std::move(pods), .now = now_});
    if (!change) return change;
    record_ = change->job;
    for (const job::TaskRecord& changed : change->tasks) {
      for (job::TaskRecord& task : tasks_) {
        if (task.id == changed.id) task = changed;
      }
    }
    events_.clear();
    for (const job::Event& event : change->events) {
      events_.push_back(event.subject.empty() ? event.message
                                              : event.subject + " " + event.message);
    }
    return change;
  }

  std::string Command(const std::string& task) const {
    for (const job::TaskRecord& one : tasks_) {
      if (one.id.ToString() == task) return one.command;
    }
    return "";
  }

  static Json Job(const std::string& condition, const std::string& message = "") {
    Json conditions = Json::array({{{"type", "Created"}, {"status", "True"}}});
    if (!condition.empty()) {
      conditions.push_back({{"type", condition}, {"status", "True"}, {"message", message}});
    }
    return {{"metadata", {{"name", "mnist-abcde"}}},
            {"status",
             {{"conditions", conditions},
              {"startTime", "2026-05-01T11:59:00Z"},
              {"completionTime", "2026-05-01T12:30:00Z"}}}};
  }

  static Json Pod(const std::string& role, int index, const std::string& phase, Json state,
                  int restarts = 0) {
    return {{"metadata",
             {{"name", "p"},
              {"labels",
               {{manifest::kReplicaTypeLabel, role},
                {manifest::kReplicaIndexLabel, std::to_string(index)}}}}},
            {"spec", {{"nodeName", "node-7"}}},
            {"status",
             {{"phase", phase},
              {"containerStatuses", Json::array({{{"name", "tensorflow"},
                                                  {"restartCount", restarts},
                                                  {"state", std::move(state)}}})}}}};
  }
  static Json Running() { return {{"running", {{"startedAt", "2026-05-01T12:00:00Z"}}}}; }
  static Json Ended(int code, const std::string& at, const std::string& reason = "Error") {
    return {{"terminated", {{"exitCode", code}, {"reason", reason}, {"finishedAt", at}}}};
  }
  const job::TaskRecord& Task(const cluster::TaskId& id) const {
    for (const job::TaskRecord& task : tasks_) {
      if (task.id == id) return task;
    }
    ADD_FAILURE();
    return tasks_.front();
  }

  job::Submission submission_;
  job::JobRecord record_;
  std::vector<job::TaskRecord> tasks_;
  std::vector<std::string> events_;
  absl::Time now_ = kNow;
};

TEST_F(ObserveTest, FollowsAJobFromItsStartToItsSuccess) {
  ASSERT_TRUE(See(Job("")));
  EXPECT_EQ(record_.state, job::JobState::kStarting);
  EXPECT_EQ(Task({"worker", 1}).address, "mnist-abcde-worker-1.ml.svc:2222");

  const auto up = [] {
    return std::vector<Json>{Pod("ps", 0, "Running", Running()),
                             Pod("worker", 0, "Running", Running()),
                             Pod("worker", 1, "Running", Running())};
  };
  ASSERT_TRUE(See(Job("Running"), up()));
  EXPECT_EQ(record_.state, job::JobState::kRunning);
  EXPECT_EQ(Task({"worker", 1}).host, "node-7");
  EXPECT_THAT(events_, ElementsAre("Running", "ps:0 running on node-7",
                                   "worker:0 running on node-7", "worker:1 running on node-7"));
  EXPECT_FALSE(See(Job("Running"), up())) << "nothing has changed";

  ASSERT_TRUE(
      See(Job("Succeeded"), {Pod("worker", 0, "Succeeded", Ended(0, "2026-05-01T12:30:00Z"))}));
  EXPECT_EQ(record_.state, job::JobState::kSucceeded);
  EXPECT_EQ(*record_.finished - *record_.started, absl::Minutes(31));
  EXPECT_EQ(Task({"worker", 0}).state, job::TaskState::kSucceeded);
  EXPECT_EQ(Task({"ps", 0}).state, job::TaskState::kStopped);
  EXPECT_FALSE(See(Job("Failed"))) << "a verdict stands";
}

TEST_F(ObserveTest, OtherTasksMayFinishAfterSuccess) {
  const auto job = Job("Succeeded");  // at 12:30
  now_ = kNow + absl::Minutes(30) + absl::Seconds(5);
  ASSERT_TRUE(See(job, {Pod("worker", 0, "Succeeded", Ended(0, "2026-05-01T12:30:00Z")),
                        Pod("worker", 1, "Running", Running())}));
  EXPECT_FALSE(job::IsFinal(record_.state));
  EXPECT_THAT(record_.reason, HasSubstr("may finish"));
  ASSERT_TRUE(See(job, {Pod("worker", 0, "Succeeded", Ended(0, "2026-05-01T12:30:00Z")),
                        Pod("worker", 1, "Succeeded", Ended(0, "2026-05-01T12:30:06Z"))}));
  EXPECT_EQ(record_.state, job::JobState::kSucceeded);
  EXPECT_EQ(Task({"worker", 1}).state, job::TaskState::kSucceeded);
}

TEST_F(ObserveTest, TasksThatExceedTheFinishGraceAreStopped) {
  now_ = kNow + absl::Minutes(31);
  ASSERT_TRUE(
      See(Job("Succeeded"), {Pod("worker", 0, "Succeeded", Ended(0, "2026-05-01T12:30:00Z")),
                             Pod("worker", 1, "Running", Running())}));
  EXPECT_EQ(record_.state, job::JobState::kSucceeded);
  EXPECT_EQ(Task({"worker", 1}).state, job::TaskState::kStopped);
}

TEST_F(ObserveTest, ReportsWhyAPodWaits) {
  Json pod = Pod("worker", 0, "Pending", Json::object());
  pod["spec"].erase("nodeName");
  pod["status"]["conditions"] = {
      {{"type", "PodScheduled"},
       {"status", "False"},
       {"reason", "Unschedulable"},
       {"message", "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."}}};
  ASSERT_TRUE(See(Job(""), {pod}));
  EXPECT_EQ(Task({"worker", 0}).state, job::TaskState::kPending);
  EXPECT_THAT(Task({"worker", 0}).reason, HasSubstr("Insufficient nvidia.com/gpu"));
  EXPECT_THAT(events_, ElementsAre(HasSubstr("worker:0 waits: Unschedulable: 0/3 nodes")));

  ASSERT_TRUE(See(
      Job(""), {Pod("worker", 0, "Pending",
                    {{"waiting", {{"reason", "ErrImagePull"}, {"message", "no such image"}}}})}));
  EXPECT_EQ(Task({"worker", 0}).state, job::TaskState::kStarting);
  EXPECT_EQ(Task({"worker", 0}).reason, "ErrImagePull: no such image");
}

TEST_F(ObserveTest, NamesTheFirstFailureAndItsVictims) {
  ASSERT_TRUE(See(Job("Failed", "Worker 1 failed with exit code 1"),
                  {Pod("worker", 0, "Failed", Ended(134, "2026-05-01T12:00:05Z")),
                   Pod("worker", 1, "Failed", Ended(1, "2026-05-01T12:00:02Z"))}));
  EXPECT_EQ(record_.state, job::JobState::kFailed);
  EXPECT_EQ(record_.reason, "Worker 1 failed with exit code 1");
  const auto report = job::FailureFromJson(record_.failure);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->first->task, (cluster::TaskId{"worker", 1}));
  EXPECT_EQ(report->first->cause, "exit code 1");
  EXPECT_THAT(report->first->last_lines, ElementsAre("last words"));
  EXPECT_THAT(report->victims, ElementsAre(HasSubstr("worker:0"), HasSubstr("ps:0")));
}

TEST_F(ObserveTest, CountsAndReportsRestarts) {
  ASSERT_TRUE(See(Job("Running"), {Pod("worker", 0, "Running", Running())}));
  ASSERT_TRUE(See(Job("Restarting", "Worker 0 failed"), {}));
  EXPECT_EQ(record_.state, job::JobState::kRestarting);
  EXPECT_THAT(events_, ElementsAre("worker:0 restarts: its pod is gone"));
  Json job = Job("Running");
  job["status"]["restarts"] = {{"worker:0", {{"count", 2}}}};
  ASSERT_TRUE(See(job, {Pod("worker", 0, "Running", Running(), 1)}));
  EXPECT_EQ(Task({"worker", 0}).restarts, 3);
}

TEST_F(ObserveTest, APodThatIsLostHasNotFailed) {
  Json pod = Pod("worker", 0, "Failed", Ended(137, "2026-05-01T12:00:05Z"));
  pod["status"]["reason"] = "Evicted";
  pod["status"]["message"] = "The node was low on resource: memory.";
  ASSERT_TRUE(See(Job("Restarting", "Worker 0 was lost"), {pod}));
  EXPECT_EQ(Task({"worker", 0}).state, job::TaskState::kRestarting);
  EXPECT_EQ(Task({"worker", 0}).reason,
            "its pod was lost: Evicted: The node was low on resource: memory.");
  // The replacement is delayed; the reason is kept.
  See(Job("Restarting", "Worker 0 was lost"));
  EXPECT_THAT(Task({"worker", 0}).reason, HasSubstr("Evicted"));
  // A job that fails for another reason meanwhile does not name this task.
  ASSERT_TRUE(See(Job("Failed", "Worker 1 failed"),
                  {pod, Pod("worker", 1, "Failed", Ended(1, "2026-05-01T12:00:09Z"))}));
  const auto report = job::FailureFromJson(record_.failure);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->first->task, (cluster::TaskId{"worker", 1}));
  EXPECT_EQ(Task({"worker", 0}).state, job::TaskState::kStopped);
}

TEST_F(ObserveTest, APodThatIsBeingDeletedHasNoOutcome) {
  ASSERT_TRUE(See(Job("Running"), {Pod("worker", 0, "Running", Running())}));
  for (const int code : {0, 143}) {
    Json pod =
        Pod("worker", 0, code == 0 ? "Succeeded" : "Failed", Ended(code, "2026-05-01T12:00:05Z"));
    pod["metadata"]["deletionTimestamp"] = "2026-05-01T12:00:30Z";
    pod["metadata"]["deletionGracePeriodSeconds"] = 30;
    pod["status"]["conditions"] = Json::array(
        {{{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", "EvictionByEvictionAPI"}}});
    See(Job("Running"), {pod});
    EXPECT_EQ(Task({"worker", 0}).state, job::TaskState::kRestarting) << code;
    EXPECT_FALSE(Task({"worker", 0}).exit_code) << code;
    EXPECT_EQ(Task({"worker", 0}).reason, "its pod is being deleted: EvictionByEvictionAPI");
  }
}

TEST_F(ObserveTest, ReportsWhyPodsCannotBeCreated) {
  Json job = Job("ReplicaFailure", "cannot create pod: exceeded quota");
  ASSERT_TRUE(See(job, {Pod("ps", 0, "Running", Running())}));
  EXPECT_EQ(record_.state, job::JobState::kStarting);
  EXPECT_EQ(record_.reason, "cannot create pod: exceeded quota");
  EXPECT_EQ(Task({"worker", 0}).reason, "cannot create pod: exceeded quota");
  EXPECT_EQ(Task({"ps", 0}).reason, "");
}

TEST_F(ObserveTest, DeletingTheTfJobStopsTheJob) {
  ASSERT_TRUE(See(Job("Running"), {Pod("worker", 0, "Running", Running())}));
  ASSERT_TRUE(See(std::nullopt));
  EXPECT_EQ(record_.state, job::JobState::kStopped);
  EXPECT_THAT(record_.reason, HasSubstr("deleted"));
  EXPECT_EQ(Task({"worker", 0}).state, job::TaskState::kStopped);
}

TEST_F(ObserveTest, ASubmissionThatWasInterruptedNeverStarted) {
  record_.supervisor = process::ProcessIdentity{.pid = 4711};
  ASSERT_TRUE(See(std::nullopt));
  EXPECT_EQ(record_.state, job::JobState::kFailed);
  EXPECT_THAT(record_.reason, HasSubstr("never started"));
}

TEST_F(ObserveTest, ReportsAMissingOperator) {
  const Json job = {{"metadata", {{"name", "mnist-abcde"}}}};
  ASSERT_TRUE(See(job));
  EXPECT_EQ(record_.state, job::JobState::kPending);
  EXPECT_EQ(record_.reason, "");
  now_ += absl::Minutes(1);
  ASSERT_TRUE(See(job));
  EXPECT_THAT(record_.reason, HasSubstr("muster operator install"));
}

// A job that others submitted runs the entry point of its image.
TEST_F(ObserveTest, CommandsAreTheJobsOwn) {
  submission_.spec = job::MustParse(R"(
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: mnist}
spec:
  tfReplicaSpecs:
    Chief: {template: {spec: {containers: [{name: tensorflow, image: "tf:1", command: [python], args: [a b]}]}}}
    Worker: {template: {spec: {containers: [{name: tensorflow, image: "tf:2"}]}}}
)");
  tasks_.clear();
  for (const cluster::TaskId& task : submission_.spec.Tasks()) tasks_.push_back({.id = task});
  See(Job("Running"));
  EXPECT_EQ(Command("chief:0"), "python 'a b'");
  EXPECT_EQ(Command("worker:0"), "(the image's: tf:2)");
}

// The status may contain anything.
TEST_F(ObserveTest, ToleratesAMalformedStatus) {
  Json job = Job("Running");
  job["status"]["restarts"] = {
      {"worker:0", {{"count", "x"}}}, {"worker:1", 5}, {"job", {{"count", -1}}}};
  See(job, {{{"metadata",
              {{"labels",
                {{"training.kubeflow.org/replica-type", "worker"},
                 {"training.kubeflow.org/replica-index", "0"}}}}},
             {"status", {{"phase", "Running"}}}}});
  EXPECT_EQ(record_.state, job::JobState::kRunning);
}

}  // namespace
}  // namespace muster::kubernetes
