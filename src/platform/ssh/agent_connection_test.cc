#include "platform/ssh/agent_connection.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "base/text/json.h"
#include "gtest/gtest.h"
#include "platform/ssh/protocol.h"

namespace muster::ssh {
namespace {

constexpr absl::Duration kHostTimeout = absl::Seconds(1);
constexpr absl::Duration kEndTimeout = absl::Seconds(3);  // as in agent_connection.cc

// A connection over a stand-in for ssh: a script that joins its streams to two FIFOs. The test
// holds the other ends and plays the agent.
class AgentConnectionTest : public testing::Test {
 protected:
  AgentConnectionTest() {
    const std::string in = base::JoinPath(temp_.path(), "in");
    const std::string out = base::JoinPath(temp_.path(), "out");
    EXPECT_EQ(::mkfifo(in.c_str(), 0600), 0);
    EXPECT_EQ(::mkfifo(out.c_str(), 0600), 0);
    const std::string script = base::JoinPath(temp_.path(), "ssh");
    EXPECT_TRUE(base::WriteFileAtomically(
                    script, absl::StrCat("#!/bin/sh\ncat ", out, " &\nexec cat >", in, "\n"))
                    .ok());
    EXPECT_EQ(::chmod(script.c_str(), 0700), 0);
    ::setenv("MUSTER_SSH", script.c_str(), 1);
    // O_RDWR: opening a FIFO waits for its other end otherwise.
    base::UniqueFd out_fd(::open(out.c_str(), O_RDWR | O_CLOEXEC));
    EXPECT_TRUE(base::WriteAll(out_fd.get(), kPreface).ok());
    agent_ = *Channel::Open(
        *loop_, base::UniqueFd(::open(in.c_str(), O_RDWR | O_CLOEXEC)), std::move(out_fd),
        {.received = [this](const Message& m) { ActAsAgent(m.head); }, .closed = [] {}});
    connection_ = std::make_unique<AgentConnection>(
        *loop_,
        AgentConnectionOptions{.host = {.name = "vm1", .address = "vm1"},
                               .agent = "muster-agent",
                               .folder = "/job",
                               .job = "job",
                               .host_timeout = kHostTimeout},
        AgentConnection::Handler{.received = [](const Message&) {},
                                 .logs = [] { return Json::object(); },
                                 .samples = [] { return Json::object(); },
                                 .up = [] {},
                                 .lost = [this](const std::string&) { lost_ = absl::Now(); }});
  }
  ~AgentConnectionTest() override { ::unsetenv("MUSTER_SSH"); }

  void ActAsAgent(const Json& head) {
    const std::string op = base::TextMember(head, "op");
    if (op == "ping") pings_.push_back(absl::Now());
    if (silent_ || (op != "hello" && op != "ping")) return;
    agent_->Send({{"op", op == "hello" ? "hello" : "pong"},
                  {"agent", "1"},
                  {"seen", 0},
                  {"sent", base::IntMember(head, "sent")},
                  {"now", TimeToJson(absl::Now())}});
  }

  template <typename Condition>
  bool RunUntil(const Condition& condition, absl::Duration timeout = absl::Seconds(30)) {
    const absl::Time deadline = absl::Now() + timeout;
    while (!condition() && absl::Now() < deadline) {
      const absl::Duration wait = connection_->next_timer() - absl::Now();
      EXPECT_TRUE(loop_->Wait(std::clamp(wait, absl::ZeroDuration(), absl::Milliseconds(20))).ok());
      int status = 0;
      for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
        connection_->OnChild(pid, status);
      }
      connection_->Advance();
    }
    return condition();
  }

  const base::TempDir temp_;
  std::unique_ptr<process::EventLoop> loop_ = *process::EventLoop::Create();
  std::unique_ptr<Channel> agent_;
  std::unique_ptr<AgentConnection> connection_;
  std::vector<absl::Time> pings_;  // when the agent received them
  std::optional<absl::Time> lost_;
  bool silent_ = false;  // no message of the agent arrives
};

TEST_F(AgentConnectionTest, PingsAreRepeatedWhileTheyAreAnswered) {
  connection_->Connect();
  EXPECT_TRUE(RunUntil([&] { return pings_.size() >= 3; }));
  EXPECT_TRUE(connection_->is_up());
  EXPECT_FALSE(lost_.has_value());
}

// Only the direction from the host is cut. The agent ends its tasks kHostTimeout after the last
// message that it receives; the supervisor must not count them as lost before that.
TEST_F(AgentConnectionTest, AHostWhoseAnswersAreCutIsLostOnlyAfterItsAgentHasEnded) {
  connection_->Connect();
  ASSERT_TRUE(RunUntil([&] { return pings_.size() >= 2; }));
  silent_ = true;
  const size_t answered = pings_.size();
  ASSERT_TRUE(RunUntil([&] { return lost_.has_value(); }));
  EXPECT_LE(pings_.size(), answered + 1);
  EXPECT_GE(*lost_ - pings_.back(), kHostTimeout + kEndTimeout - absl::Milliseconds(200));
}

}  // namespace
}  // namespace muster::ssh
