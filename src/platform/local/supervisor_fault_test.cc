// Jobs in which a process is killed, hangs or fails.
#include <netinet/in.h>
#include <sys/socket.h>

#include "cluster/address.h"
#include "gmock/gmock.h"
#include "platform/local/addresses.h"
#include "platform/local/supervisor_testing.h"

namespace muster::local {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

std::vector<std::string> EventsOf(const nlohmann::json& record) {
  return record["events"].get<std::vector<std::string>>();
}

// Processes that the main process leaves in other sessions, one way per parameter.
class GrandchildrenTest : public SupervisorTest, public testing::WithParamInterface<const char*> {};

TEST_P(GrandchildrenTest, EndWithTheAttempt) {
  MustStart(absl::StrCat("name: x\nroles:\n  chief: {command: \"", Await("done"),
                         "\"}\n  worker:\n    command: |\n      ", GetParam(),
                         "\npolicies: {finish_grace: 10ms}\n"));
  ASSERT_TRUE(WaitForTask("worker:0", "Succeeded"));
  EXPECT_TRUE(base::Eventually([this] { return Processes("worker:0") == 0; }, absl::Seconds(10)));
  EXPECT_EQ(Processes("chief:0") > 0, true);
  Touch("done");
  WaitForEnd();
  EXPECT_EQ(State(), "Succeeded");
}

INSTANTIATE_TEST_SUITE_P(
    Ways, GrandchildrenTest,
    testing::Values(
        "sleep 1000 & echo in the group", "setsid sleep 1000 & echo in its own session",
        "setsid sleep 1000 > /dev/null 2>&1 & echo silent",
        "(setsid sh -c 'setsid sleep 1000 & sleep 1000' &) > /dev/null 2>&1",
        "for i in 1 2 3 4 5 6 7 8 9; do setsid sleep 1000 > /dev/null 2>&1 & done",
        "setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 0.01; done' > /dev/null 2>&1 &"));

// The grandchild forks continuously, so that its pid changes between scan and kill.
TEST_F(SupervisorTest, AGrandchildThatKeepsForkingEndsWithTheAttempt) {
  ASSERT_TRUE(base::WriteFileAtomically(home_ + "/hop.sh",
                                        "echo $$ > hopped.$$; mv hopped.$$ hopped\n"
                                        "setsid sh hop.sh > /dev/null 2>&1 &\nexit 0\n")
                  .ok());
  MustStart(absl::StrCat("name: x\nroles:\n  chief: {command: \"", Await("done"),
                         "\"}\n  worker: {command: \"setsid sh hop.sh > /dev/null 2>&1 & ",
                         Await("hopped"), "\"}\npolicies: {finish_grace: 10ms}\n"));
  ASSERT_TRUE(WaitForTask("worker:0", "Succeeded"));
  EXPECT_TRUE(base::Eventually([this] { return Processes("worker:0") == 0; }, absl::Seconds(10)));
  Touch("done");
  WaitForEnd();
}

TEST_F(SupervisorTest, ADaemonOfARunningTaskIsLeftAlone) {
  MustStart(R"(
name: x
command: "(setsid sleep 1000 > /dev/null 2>&1 &); (true &); echo ready; while [ ! -e done ]; do sleep 0.02; done"
roles: {worker: {}}
)");
  ASSERT_TRUE(WaitForOutput("worker-0", "ready"));
  ASSERT_TRUE(base::Eventually([this] { return Processes() >= 2; }));
  EXPECT_TRUE(Call({{"op", "none"}}).status().message() != "");  // its loop has run since
  EXPECT_GE(Processes(), 2u);
  Touch("done");
  WaitForEnd();
}

constexpr char kFamily[] = R"(
name: x
command: "setsid sleep 1000 > /dev/null 2>&1 & (setsid sh -c 'setsid sleep 1000 & exec sleep 1000' &); echo ready; trap '' TERM; while :; do sleep 0.02; done"
roles: {worker: {replicas: 2}}
policies: {stop_grace: 100ms}
)";

TEST_F(SupervisorTest, NothingOutlivesASupervisorThatIsKilled) {
  MustStart(kFamily);
  ASSERT_TRUE(WaitForOutput("worker-0", "ready") && WaitForOutput("worker-1", "ready"));
  ::kill(Record()["supervisor"].get<int>(), SIGKILL);
  EXPECT_EQ(WaitForEnd(), 1);
  EXPECT_EQ(Processes(), 0u);
}

TEST_F(SupervisorTest, AKilledGuardStopsTheJobGracefully) {
  MustStart(kFamily);
  ASSERT_TRUE(WaitForOutput("worker-0", "ready") && WaitForOutput("worker-1", "ready"));
  const int supervisor = Record()["supervisor"];
  ::kill(guard_, SIGKILL);
  EXPECT_EQ(WaitForEnd(), -1);
  EXPECT_TRUE(base::Eventually([&] {
    const auto process = process::ReadProcess(supervisor);
    return !process.ok() || process->zombie;
  }));
  EXPECT_EQ(State(), "Stopped");
  EXPECT_TRUE(base::Eventually([this] { return Processes() == 0; }));
  EXPECT_THAT(Record()["reason"].get<std::string>(), HasSubstr("SIGTERM"));
}

TEST_F(SupervisorTest, ProcessesLeftByAKilledSupervisorAndGuardAreFoundLater) {
  MustStart(kFamily);
  ASSERT_TRUE(WaitForOutput("worker-0", "ready") && WaitForOutput("worker-1", "ready"));
  const int supervisor = Record()["supervisor"];
  ::kill(guard_, SIGSTOP);
  ::kill(supervisor, SIGKILL);
  ::kill(guard_, SIGKILL);
  WaitForEnd();
  EXPECT_GT(supervise::KillLeftovers(submission_.id), 0);
  EXPECT_EQ(Processes(), 0u);
}

TEST_F(SupervisorTest, AStalledTaskIsCapturedAndRestarted) {
  MustStart(R"(
name: x
command: "echo attempt {attempt}; [ {attempt} = 1 ] || exec sleep 1000"
roles: {worker: {}}
policies: {backoff: 10ms, stall: 300ms}
)");
  WaitForEnd();
  EXPECT_EQ(State(), "Succeeded");
  EXPECT_EQ(LogOf("worker-0"), "attempt 0\nattempt 1\n");
  const std::string stacks = dir().stacks({"worker", 0}, 0);
  EXPECT_THAT(base::ReadFile(stacks).value_or(""),
              AllOf(HasSubstr("sleep 1000"), HasSubstr("thread ")));
  EXPECT_THAT(EventsOf(Record()),
              Contains(AllOf(HasSubstr("worker:0|stalled: no output"), HasSubstr(stacks))));
}

TEST_F(SupervisorTest, AProgressFileKeepsASilentTaskAlive) {
  MustStart(R"(
name: x
command: "i=0; while [ $i -lt 25 ]; do echo $i > $MUSTER_PROGRESS_FILE; i=$((i + 1)); sleep 0.1; done"
roles: {worker: {restart: never}}
policies: {stall: 2s}
)");
  WaitForEnd();
  EXPECT_EQ(State(), "Succeeded");
}

TEST_F(SupervisorTest, StallDetectionCanBeDisabledDuringACapture) {
  const auto job = [](const char* stall) {
    return absl::StrCat("name: x\ncommand: \"", Await("done"), "\"\nroles: {worker: {}}\n",
                        "policies: {stop_grace: 5s", stall, "}\n");
  };
  MustStart(job(", stall: {timeout: 100ms, action: report}"));
  ASSERT_TRUE(base::Eventually([&] {
    return std::filesystem::exists(dir().stacks({"worker", 0}, 0));
  }));
  ASSERT_TRUE(Change(job("")).ok());
  Touch("done");
  WaitForEnd();
  EXPECT_EQ(State(), "Succeeded");
}

TEST_F(SupervisorTest, AHistoryThatFailsForAWhileLosesNothing) {
  MustStart(absl::StrCat("name: x\ncommand: \"echo ready; ", Await("{role}.done"),
                         "\"\nroles: {chief: {}, worker: {}}\n"));
  ASSERT_TRUE(WaitForOutput("chief-0", "ready"));
  ASSERT_TRUE(WaitForTask("worker:0", "Running"));
  Touch("sink.broken");
  Touch("worker.done");
  const auto complained = [&](const char* what) {
    return base::ReadFile(dir().supervisor_log()).value_or("").find(what) != std::string::npos;
  };
  ASSERT_TRUE(base::Eventually([&] { return complained("broken on purpose"); }));
  EXPECT_EQ(StateOf("worker:0"), "Running");
  Touch("chief.done");
  std::filesystem::remove(home_ + "/sink.broken");
  WaitForEnd();
  EXPECT_EQ(State(), "Succeeded");
  EXPECT_EQ(StateOf("worker:0"), "Succeeded");
  std::vector<std::string> events = EventsOf(Record());
  for (const char* event : {"worker:0|succeeded", "chief:0|succeeded", "|Succeeded"}) {
    EXPECT_EQ(std::count(events.begin(), events.end(), event), 1) << event;
  }
}

TEST_F(SupervisorTest, AHistoryThatCannotBeWrittenAtAllStartsNothing) {
  Touch("sink.broken");
  EXPECT_THAT(Start("name: x\ncommand: echo started\nroles: {worker: {}}\n"),
              HasSubstr("history cannot be written"));
  EXPECT_EQ(WaitForEnd(), 1);
  EXPECT_EQ(LogOf("worker-0"), "");
}

TEST_F(SupervisorTest, ATaskWithAStolenPortRestartsWithAnotherPort) {
  MustStart(absl::StrCat(
      R"(
name: x
command: ")",
      Await("taken"),
      R"(; echo on {port}; [ {attempt} = 1 ] || { echo Address already in use; exit 1; }"
roles: {worker: {restart: never}}
)"));
  ASSERT_TRUE(WaitForTask("worker:0", "Running"));
  const int port = cluster::PortOf(Record()["tasks"]["worker:0"]["address"].get<std::string>());
  const base::UniqueFd stranger(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(static_cast<uint16_t>(port))};
  ASSERT_EQ(::bind(stranger.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::listen(stranger.get(), 1), 0);
  Touch("taken");
  WaitForEnd();
  EXPECT_EQ(State(), "Succeeded");
  EXPECT_NE(cluster::PortOf(Record()["tasks"]["worker:0"]["address"].get<std::string>()), port);
  EXPECT_EQ(Record()["tasks"]["worker:0"]["restarts"], 0);
}

TEST_F(SupervisorTest, ATaskThatClosesItsOutputIsStillWatched) {
  MustStart(
      "name: x\ncommand: \"exec > /dev/null 2>&1; sleep 0.1; exit 4\"\nroles: {worker: {}}\n");
  WaitForEnd();
  EXPECT_EQ(Record()["reason"], "worker:0 failed: exit code 4");
}

TEST_F(SupervisorTest, ManyTasksExitSimultaneously) {
  MustStart(
      "name: x\ncommand: echo {index}\nroles: {worker: {replicas: 64}}\npolicies: {success: "
      "all_workers}\n");
  WaitForEnd();
  EXPECT_EQ(State(), "Succeeded");
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(LogOf(absl::StrCat("worker-", i)), absl::StrCat(i, "\n"));
  }
}

}  // namespace
}  // namespace muster::local
