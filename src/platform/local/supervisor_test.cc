// Real jobs from start to verdict. See supervisor_fault_test.cc for faults.
#include "absl/strings/match.h"
#include "cluster/address.h"
#include "gmock/gmock.h"
#include "job/failure.h"
#include "platform/local/addresses.h"
#include "platform/local/supervisor_testing.h"
#include "supervise/main.h"

namespace muster::local {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST_F(SupervisorTest, AJobSucceeds) {
  MustStart(R"(
name: x
roles:
  chief: {command: "echo I am {role}:{index} on {port}"}
  ps: {command: "exec sleep 1000"}
)");
  EXPECT_EQ(WaitForEnd(), 0);
  const nlohmann::json record = Record();
  EXPECT_EQ(record["state"], "Succeeded");
  EXPECT_EQ(record["failure"], "");
  const auto& chief = record["tasks"]["chief:0"];
  EXPECT_EQ(chief["state"], "Succeeded");
  EXPECT_EQ(chief["exit_code"], 0);
  EXPECT_EQ(chief["pid"], 0);
  EXPECT_EQ(record["tasks"]["ps:0"]["state"], "Stopped");
  EXPECT_EQ(
      LogOf("chief-0"),
      absl::StrCat("I am chief:0 on ", cluster::PortOf(chief["address"].get<std::string>()), "\n"));
  EXPECT_THAT(record["events"].get<std::vector<std::string>>(),
              AllOf(Contains("chief:0|running"), Contains("|Running: every task is up"),
                    Contains("chief:0|succeeded"), Contains("|Succeeded")));
}

TEST_F(SupervisorTest, AFailedJobHasAFailureReport) {
  MustStart(R"(
name: x
roles:
  chief: {command: "exec sleep 1000"}
  worker: {command: "echo before; echo 'ValueError: bad shape' >&2; exit 3"}
)");
  EXPECT_EQ(WaitForEnd(), 0);  // the supervisor succeeded; the verdict is in the sink
  const nlohmann::json record = Record();
  EXPECT_EQ(record["state"], "Failed");
  EXPECT_EQ(record["reason"], "worker:0 failed: exit code 3: ValueError: bad shape");
  const auto report = job::FailureFromJson(record["failure"].get<std::string>());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->first->task, (cluster::TaskId{"worker", 0}));
  EXPECT_EQ(report->first->exit_code, 3);
  EXPECT_THAT(report->first->last_lines, ElementsAre("before", "ValueError: bad shape"));
  EXPECT_THAT(report->victims, ElementsAre("chief:0: stopped by muster"));
}

TEST_F(SupervisorTest, ARestartedTaskHasTheNextAttemptAndTheSameLog) {
  MustStart(R"(
name: x
command: "echo attempt {attempt} $TORCHELASTIC_RESTART_COUNT; [ {attempt} = 2 ] || kill -9 $$"
roles: {worker: {}}
policies: {backoff: 10ms}
)");
  WaitForEnd();
  const nlohmann::json record = Record();
  EXPECT_EQ(record["state"], "Succeeded");
  EXPECT_EQ(record["tasks"]["worker:0"]["restarts"], 2);
  EXPECT_EQ(record["tasks"]["worker:0"]["attempt"], 2);
  EXPECT_EQ(LogOf("worker-0"), "attempt 0 0\nattempt 1 1\nattempt 2 2\n");
}

TEST_F(SupervisorTest, AProgramThatDoesNotExistFailsTheJobAtOnce) {
  MustStart("name: x\nroles: {worker: {command: [no-such-program, arg]}}\n");
  WaitForEnd();
  EXPECT_EQ(State(), "Failed");
  EXPECT_THAT(Record()["reason"].get<std::string>(),
              HasSubstr("worker:0 failed: command not found: 'no-such-program'"));
}

TEST_F(SupervisorTest, APortInUseIsReportedBeforeAnyStart) {
  supervise::PortReservations other_job;
  const int port = *other_job.Reserve();
  EXPECT_THAT(
      Start(absl::StrCat("name: x\ncommand: echo started\nroles: {worker: {port: ", port, "}}\n")),
      HasSubstr(absl::StrCat("worker:0: port ", port, " belongs to another job")));
  EXPECT_EQ(WaitForEnd(), 1);
  EXPECT_EQ(LogOf("worker-0"), "");
}

TEST_F(SupervisorTest, TheOutputOfATaskThatDiesAtOnceIsComplete) {
  MustStart(R"(
name: x
command: "head -c 3000000 /dev/zero | tr '\\0' x; kill -9 $$"
roles: {worker: {restart: never}}
)");
  WaitForEnd();
  EXPECT_EQ(State(), "Failed");
  EXPECT_EQ(LogOf("worker-0"), std::string(3'000'000, 'x'));
}

TEST_F(SupervisorTest, ATaskIsUpOnceItListens) {
  ASSERT_TRUE(base::WriteFileAtomically(home_ + "/serve.py", R"py(
import os, socket, sys, time
while not os.path.exists("listen"): time.sleep(0.02)
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
time.sleep(1000)
)py")
                  .ok());
  MustStart(
      absl::StrCat("name: x\nroles:\n  chief: {command: \"", Await("done"),
                   "\"}\n  ps: {ready: listening, command: [python3, serve.py, '{port}']}\n"));
  ASSERT_TRUE(WaitForTask("chief:0", "Running"));
  EXPECT_EQ(StateOf("ps:0"), "Starting");
  EXPECT_EQ(State(), "Starting");
  Touch("listen");
  ASSERT_TRUE(WaitForTask("ps:0", "Running"));
  EXPECT_EQ(State(), "Running");
  Touch("done");
  WaitForEnd();
  EXPECT_EQ(State(), "Succeeded");
}

TEST_F(SupervisorTest, ATaskThatNeverListensIsNamed) {
  MustStart(R"(
name: x
command: exec sleep 1000
roles:
  chief: {}
  ps: {ready: listening}
policies: {start_timeout: 300ms}
)");
  WaitForEnd();
  EXPECT_EQ(State(), "Failed");
  EXPECT_THAT(Record()["reason"].get<std::string>(), HasSubstr("ps:0 did not start within 300ms"));
}

TEST_F(SupervisorTest, AStopEndsTasksGracefully) {
  MustStart(R"(
name: x
command: "trap 'echo cleaning up; exit 0' TERM; echo ready; while :; do sleep 0.02; done"
roles: {worker: {replicas: 2}}
)");
  ASSERT_TRUE(WaitForOutput("worker-0", "ready"));
  ASSERT_TRUE(WaitForOutput("worker-1", "ready"));
  EXPECT_TRUE(Call({{"op", "stop"}}).ok());
  WaitForEnd();
  EXPECT_EQ(State(), "Stopped");
  EXPECT_EQ(Record()["reason"], "stopped by the user");
  EXPECT_TRUE(absl::EndsWith(LogOf("worker-0"), "cleaning up\n")) << LogOf("worker-0");
  EXPECT_EQ(StateOf("worker:1"), "Stopped");
}

TEST_F(SupervisorTest, ATaskThatIgnoresTheRequestIsKilledAfterTheGracePeriod) {
  MustStart(R"(
name: x
command: "trap '' TERM; echo ready; while :; do sleep 0.02; done"
roles: {worker: {}}
policies: {stop_grace: 200ms}
)");
  ASSERT_TRUE(WaitForOutput("worker-0", "ready"));
  EXPECT_TRUE(Call({{"op", "stop"}}).ok());
  WaitForEnd();
  EXPECT_EQ(State(), "Stopped");
  EXPECT_EQ(Record()["tasks"]["worker:0"]["exit_code"], 137);
}

TEST_F(SupervisorTest, TheSecondStopDoesNotWait) {
  MustStart(R"(
name: x
command: "trap '' TERM; echo ready; while :; do sleep 0.02; done"
roles: {worker: {}}
policies: {stop_grace: 1h}
)");
  ASSERT_TRUE(WaitForOutput("worker-0", "ready"));
  EXPECT_TRUE(Call({{"op", "stop"}}).ok());
  EXPECT_TRUE(Call({{"op", "stop"}, {"immediately", true}}).ok());
  WaitForEnd();
  EXPECT_EQ(State(), "Stopped");
}

TEST_F(SupervisorTest, WatchersSeeTheVerdictBeforeTheEndOfFile) {
  MustStart(absl::StrCat("name: x\ncommand: \"", Await("done"), "\"\nroles: {worker: {}}\n"));
  auto client = supervise::ControlClient::Connect(dir().path());
  ASSERT_TRUE(client.ok());
  ASSERT_TRUE(client->Call({{"op", "watch"}}, absl::Seconds(30)).ok());
  Touch("sink.broken");  // delays the verdict
  Touch("done");
  ASSERT_TRUE(base::Eventually([&] {
    return base::ReadFile(dir().supervisor_log()).value_or("").find("cannot write") !=
           std::string::npos;
  }));
  std::filesystem::remove(home_ + "/sink.broken");
  ASSERT_TRUE(base::Eventually([&] { return !client->DrainNotifications(); }));
  EXPECT_EQ(State(), "Succeeded");
  WaitForEnd();
}

TEST_F(SupervisorTest, InvalidRequestsHaveNoEffect) {
  MustStart(absl::StrCat("name: x\ncommand: \"", Await("done"), "\"\nroles: {worker: {}}\n"));
  for (const char* request : {R"({"op": 7})", R"({"op": "dance"})", R"({"op": "update"})",
                              R"({"op": "update", "submission": 5})",
                              R"({"op": "update", "submission": {"spec": {}}})"}) {
    EXPECT_FALSE(Call(nlohmann::json::parse(request)).ok()) << request;
  }
  Touch("done");
  WaitForEnd();
  EXPECT_EQ(State(), "Succeeded");
}

TEST_F(SupervisorTest, AnUpdateRestartsChangedTasks) {
  const auto job = [](const char* worker) {
    return absl::StrCat("name: x\nroles:\n  chief: {command: \"echo $$; ", Await("done"),
                        "\"}\n  worker: {command: \"echo ", worker, "; exec sleep 1000\"}\n",
                        "policies: {finish_grace: 10ms}\n");
  };
  MustStart(job("old"));
  ASSERT_TRUE(WaitForOutput("worker-0", "old"));
  const int chief = Record()["tasks"]["chief:0"]["pid"];
  ASSERT_TRUE(Change(job("new")).ok());
  ASSERT_TRUE(WaitForOutput("worker-0", "new"));
  EXPECT_EQ(Record()["tasks"]["chief:0"]["pid"], chief);
  EXPECT_EQ(dir().LoadSubmission()->source, job("new"));
  Touch("done");
  WaitForEnd();
  EXPECT_EQ(State(), "Succeeded");
  EXPECT_EQ(LogOf("worker-0"), "old\nnew\n");
}

TEST_F(SupervisorTest, AnUpdateMayRemoveAndRestoreARole) {
  const std::string without =
      absl::StrCat("name: x\nroles:\n  chief: {command: \"", Await("done"), "\"}\n");
  const std::string with = absl::StrCat(without,
                                        "  evaluator: {command: \"trap 'sleep 0.3; exit 7' TERM; "
                                        "echo on; while :; do sleep 0.02; done\"}\n");
  MustStart(with);
  ASSERT_TRUE(WaitForOutput("evaluator-0", "on\n"));
  ASSERT_TRUE(Change(without).ok());
  ASSERT_TRUE(Change(with).ok());  // while the first one is still ending
  ASSERT_TRUE(base::Eventually([&] {
    const nlohmann::json row = Record()["tasks"]["evaluator:0"];
    return row["attempt"] == 1 && row["state"] == "Running";
  }));
  EXPECT_TRUE(base::Eventually([&] { return absl::EndsWith(LogOf("evaluator-0"), "on\n"); }));
  ASSERT_TRUE(Change(without).ok());
  ASSERT_TRUE(WaitForTask("evaluator:0", ""));
  EXPECT_EQ(Processes("evaluator:0"), 0u);
  EXPECT_EQ(State(), "Running");
  Touch("done");
  WaitForEnd();
  EXPECT_EQ(State(), "Succeeded");
}

TEST_F(SupervisorTest, ARejectedUpdateChangesNothing) {
  const std::string job = R"(
name: x
command: "trap '' TERM; echo ready; while :; do sleep 0.02; done"
roles: {worker: {}}
policies: {stop_grace: 1h}
)";
  MustStart(job);
  ASSERT_TRUE(WaitForOutput("worker-0", "ready"));
  ASSERT_TRUE(Call({{"op", "stop"}}).ok());
  EXPECT_EQ(Change("name: x\ncommand: other\nroles: {worker: {}}\n").code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(dir().LoadSubmission()->source, job);
  ASSERT_TRUE(Call({{"op", "stop"}, {"immediately", true}}).ok());
  WaitForEnd();
}

}  // namespace
}  // namespace muster::local
