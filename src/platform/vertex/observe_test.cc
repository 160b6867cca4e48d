#include "platform/vertex/observe.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/failure.h"
#include "job/format/parse.h"
#include "platform/vertex/errors.h"

namespace muster::vertex {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

const absl::Time kNow = absl::FromUnixSeconds(1767225700);

class VertexObserve : public ::testing::Test {
 protected:
  VertexObserve() {
    submission_.id = "job1";
    submission_.spec =
        job::ParseJob("name: j\ncommand: [x]\nroles: {chief: {}, worker: {replicas: 2}}\n",
                      {.file_name = "job.yaml", .working_dir = "/w"})
            .value();
    record_.created = kNow - absl::Minutes(2);
  }

  std::optional<job::StateChange> See(std::optional<Json> job) {
    const auto lines = [](const cluster::TaskId& task) {
      return std::vector<std::string>{task.ToString() + " said this"};
    };
    auto change =
        Compare({record_, tasks_, submission_, lines}, {.job = std::move(job), .now = kNow});
    if (!change) return change;
    record_ = change->job;
    for (const job::TaskRecord& task : change->tasks) {
      std::erase_if(tasks_, [&](const job::TaskRecord& other) { return other.id == task.id; });
      tasks_.push_back(task);
    }
    return change;
  }

  const job::TaskRecord& Task(const std::string& name) const {
    for (const job::TaskRecord& task : tasks_) {
      if (task.id.ToString() == name) return task;
    }
    ADD_FAILURE() << "no task " << name;
    return tasks_.front();
  }

  job::Submission submission_;
  job::JobRecord record_{.id = "job1", .name = "j", .platform = "vertex"};
  std::vector<job::TaskRecord> tasks_;
};

Json InState(const std::string& state) {
  return {{"name", "projects/1/locations/us-central1/customJobs/42"},
          {"displayName", "job1"},
          {"state", "JOB_STATE_" + state},
          {"createTime", "2026-01-01T00:00:00.000000Z"},
          {"startTime", "2026-01-01T00:00:30Z"}};
}

TEST_F(VertexObserve, FollowsTheStatesOfVertexAi) {
  ASSERT_TRUE(See(InState("QUEUED")));
  EXPECT_EQ(record_.state, job::JobState::kPending);
  See(InState("PENDING"));
  EXPECT_EQ(record_.state, job::JobState::kStarting);
  See(InState("RUNNING"));
  EXPECT_EQ(record_.state, job::JobState::kRunning);
  EXPECT_EQ(Task("worker:1").state, job::TaskState::kRunning);
  EXPECT_FALSE(See(InState("RUNNING")));
  See(InState("CANCELLING"));
  EXPECT_EQ(record_.state, job::JobState::kRunning);
  EXPECT_THAT(record_.reason, HasSubstr("being cancelled"));
  Json done = InState("SUCCEEDED");
  done["endTime"] = "2026-01-01T00:01:00Z";
  See(done);
  EXPECT_EQ(record_.state, job::JobState::kSucceeded);
  EXPECT_EQ(record_.finished, absl::FromUnixSeconds(1767225660));
  EXPECT_EQ(Task("chief:0").state, job::TaskState::kSucceeded);
  EXPECT_EQ(Task("worker:0").state, job::TaskState::kStopped);
  // A verdict is final.
  EXPECT_FALSE(See(InState("RUNNING")));
}

TEST_F(VertexObserve, AFailureNamesTheTaskThatVertexAiReports) {
  Json failed = InState("FAILED");
  failed["error"] = {{"code", 3},
                     {"message",
                      "The replica workerpool1-1 exited with a non-zero status of 7. To "
                      "find out more about why your job exited please check the logs."}};
  See(failed);
  EXPECT_EQ(record_.state, job::JobState::kFailed);
  EXPECT_EQ(Task("worker:1").state, job::TaskState::kFailed);
  EXPECT_EQ(Task("worker:1").exit_code, 7);
  EXPECT_EQ(Task("chief:0").state, job::TaskState::kStopped);
  const auto report = job::FailureFromJson(record_.failure);
  ASSERT_TRUE(report.ok() && report->first) << record_.failure;
  EXPECT_EQ(report->first->task.ToString(), "worker:1");
  EXPECT_EQ(report->first->last_lines, std::vector<std::string>{"worker:1 said this"});
}

TEST_F(VertexObserve, UnknownStatesLeadToNoVerdict) {
  See(InState("RUNNING"));
  See(InState("SOMETHING_NEW"));
  EXPECT_EQ(record_.state, job::JobState::kRunning);
  EXPECT_THAT(record_.reason, HasSubstr("SOMETHING_NEW"));
  See(Json{{"state", 7}});
  EXPECT_EQ(record_.state, job::JobState::kRunning);
}

TEST_F(VertexObserve, ExpiredAndCancelledAndDeletedJobsHaveEnded) {
  See(InState("EXPIRED"));
  EXPECT_EQ(record_.state, job::JobState::kFailed);
  EXPECT_THAT(record_.reason, HasSubstr("deadline"));
  record_ = {.id = "job1", .state = job::JobState::kRunning};
  See(InState("CANCELLED"));
  EXPECT_EQ(record_.state, job::JobState::kStopped);
  record_ = {.id = "job1", .state = job::JobState::kRunning};
  See(std::nullopt);
  EXPECT_EQ(record_.state, job::JobState::kStopped);
}

TEST_F(VertexObserve, ConvertsJobsOfOtherClients) {
  Json job = InState("RUNNING");
  job["jobSpec"] = {
      {"workerPoolSpecs",
       {{{"replicaCount", "1"}, {"containerSpec", {{"imageUri", "i"}, {"args", {"a"}}}}},
        Json::object(),
        {{"replicaCount", 2}}}}};
  const job::JobRecord record = RecordOf(job, kNow);
  EXPECT_EQ(record.id, "42");
  EXPECT_EQ(record.tasks, 3);
  EXPECT_EQ(record.state, job::JobState::kRunning);
  job["labels"] = {{"muster_job", "train_1"}};
  EXPECT_EQ(RecordOf(job, kNow).id, "train_1");
  // The service may answer anything.
  for (const Json& odd :
       {Json::object(), Json{{"jobSpec", 1}}, Json{{"labels", "x"}},
        Json{{"jobSpec", {{"workerPoolSpecs", {1, Json{{"replicaCount", "x"}}}}}}},
        Json{{"error", 5}, {"state", "JOB_STATE_FAILED"}}}) {
    EXPECT_EQ(RecordOf(odd, kNow).platform, "vertex") << odd;
  }
}

TEST(VertexErrors, OnlyTheServiceReportsThatAJobIsGone) {
  const auto code = [](const std::string& body) {
    net::Response response;
    response.status = 404;
    response.body = body;
    return ErrorOf({.project = "p", .job = "42"}, response).code();
  };
  EXPECT_EQ(code(R"({"error": {"status": "NOT_FOUND", "message": "CustomJob 42 does not exist"}})"),
            absl::StatusCode::kNotFound);
  for (const std::string body :
       {"<html>", "{}", R"({"error": {"status": "NOT_FOUND", "message": "Project not found"}})",
        R"({"error": {"message": "no page /customJobs/42"}})"}) {
    EXPECT_EQ(code(body), absl::StatusCode::kFailedPrecondition) << body;
  }
}

std::string Explained(int status, const std::string& body, Attempt attempt = {}) {
  attempt.project = "p";
  attempt.region = "us-central1";
  attempt.permission = "aiplatform.customJobs.create";
  net::Response response;
  response.status = status;
  response.body = body;
  return std::string(ErrorOf(attempt, response).message());
}

TEST(VertexErrors, ErrorsNameTheRemedy) {
  EXPECT_THAT(
      Explained(429, R"({"error": {"message": "Quota exceeded", "status":
      "RESOURCE_EXHAUSTED"}})"),
      AllOf(HasSubstr("quota of project p in us-central1"), HasSubstr("gcloud alpha services")));
  EXPECT_THAT(Explained(403, R"({"error": {"message": "Permission denied"}})"),
              AllOf(HasSubstr("gcloud projects add-iam-policy-binding p"),
                    HasSubstr("roles/aiplatform.user")));
  EXPECT_THAT(Explained(403, "{}", {.service = kLoggingService}),
              HasSubstr("roles/logging.viewer"));
  EXPECT_THAT(Explained(403, R"({"error": {"details": [{"reason": "SERVICE_DISABLED"}]}})"),
              HasSubstr("gcloud services enable aiplatform.googleapis.com --project=p"));
  EXPECT_THAT(Explained(403, R"({"error": {"details": [{"reason": "BILLING_DISABLED"}],
      "message": "This API method requires billing to be enabled"}})"),
              HasSubstr("gcloud billing projects link p"));
  EXPECT_THAT(
      Explained(403, R"({"error": {"message": "Permission 'iam.serviceaccounts.actAs' denied"}})",
                {.member = "user:me@example.com"}),
      AllOf(HasSubstr("--role=roles/iam.serviceAccountUser"),
            HasSubstr("--member=user:me@example.com")));
  EXPECT_THAT(Explained(429, "{}", {.service = kLoggingService}),
              AllOf(HasSubstr("--polling-interval"), Not(HasSubstr("machines"))));
  EXPECT_THAT(Explained(401, ""), HasSubstr("gcloud auth application-default login"));
  EXPECT_THAT(Explained(500, "<html>"), HasSubstr("HTTP 500"));
}

}  // namespace
}  // namespace muster::vertex
