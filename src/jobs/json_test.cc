#include "jobs/json.h"

#include "gtest/gtest.h"
#include "job/failure.h"

namespace muster::jobs {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);

job::JobRecord FailedJob() {
  job::JobRecord job{.id = "mnist-x7k2q",
                     .name = "mnist",
                     .platform = "local",
                     .state = job::JobState::kFailed,
                     .created = kStart - absl::Seconds(1),
                     .started = kStart,
                     .finished = kStart + absl::Seconds(65),
                     .tasks = 3};
  job::FailureReport report{.summary = "worker:1 failed"};
  report.first = job::TaskFailure{.task = {"worker", 1}, .attempt = 2, .cause = "exit code 1"};
  job.failure = job::FailureToJson(report);
  return job;
}

TEST(JsonTest, FormatsAJob) {
  const nlohmann::json json = JobToJson(FailedJob());
  EXPECT_EQ(json["id"], "mnist-x7k2q");
  EXPECT_EQ(json["state"], "Failed");
  EXPECT_EQ(json["tasks"], 3);
  EXPECT_EQ(json["started"], "2023-11-14T22:13:20+00:00");
  EXPECT_TRUE(json["supervisor_pid"].is_null());
  EXPECT_EQ(json["failure"]["first"]["task"], "worker:1");
  EXPECT_EQ(json["failure"]["first"]["attempt"], 3);  // counted from 1
  const nlohmann::json running =
      JobToJson({.id = "a", .name = "a", .state = job::JobState::kRunning, .started = kStart});
  for (const char* absent : {"finished", "failure", "reason", "resumed_from"}) {
    EXPECT_TRUE(running.at(absent).is_null()) << absent;
  }
}

TEST(JsonTest, FormatsATask) {
  const nlohmann::json json = TaskToJson("mnist-x7k2q", {.id = {"worker", 1},
                                                         .state = job::TaskState::kRunning,
                                                         .restarts = 2,
                                                         .pid = 77,
                                                         .command = "python train.py --long"});
  const nlohmann::json pending = TaskToJson("mnist-x7k2q", {.id = {"worker", 1}});
  EXPECT_EQ(json["task"], "worker:1");
  EXPECT_EQ(json["id"], pending["id"]);
  EXPECT_EQ(json["pid"], 77);
  EXPECT_TRUE(json["exit_code"].is_null());
  EXPECT_EQ(json["command"], "python train.py --long");
  EXPECT_EQ(json["attempt"], 1);
  for (const char* absent : {"host", "address", "pid", "command", "started", "reason"}) {
    EXPECT_TRUE(pending.at(absent).is_null()) << absent;
  }
}

TEST(JsonTest, FormatsAMachine) {
  const nlohmann::json json =
      MachineToJson({.name = "vm1", .roles = "chief", .status = "Connected"});
  EXPECT_EQ(json["machine"], "vm1");
  EXPECT_EQ(json["status"], "Connected");
  EXPECT_TRUE(json["region"].is_null());
}

TEST(JsonTest, FormatsAJobWithItsParts) {
  const nlohmann::json json = JobDetailsToJson({.job = {.id = "x-1", .name = "x"},
                                                .progress = {},
                                                .tasks = {{.id = {"worker", 0}}},
                                                .machines = {{.name = "vm1"}},
                                                .events = {{.sequence = 7}}});
  EXPECT_EQ(json["id"], "x-1");
  EXPECT_TRUE(json["progress"].is_null());
  ASSERT_EQ(json["tasks"].size(), 1);
  EXPECT_EQ(json["tasks"][0]["task"], "worker:0");
  EXPECT_EQ(json["machines"][0]["machine"], "vm1");
  EXPECT_EQ(json["events"][0]["sequence"], 7);
  EXPECT_TRUE(JobDetailsToJson({})["events"].is_array());
}

TEST(JsonTest, FormatsAnEvent) {
  const nlohmann::json of_task = EventToJson(
      {.sequence = 3, .time = kStart, .kind = "task", .subject = "worker:1", .message = "started"});
  EXPECT_EQ(of_task["sequence"], 3);
  EXPECT_EQ(of_task["time"], "2023-11-14T22:13:20+00:00");
  EXPECT_EQ(of_task["task"], "worker:1");
  EXPECT_TRUE(EventToJson({.time = kStart, .kind = "job"})["task"].is_null());
}

}  // namespace
}  // namespace muster::jobs
