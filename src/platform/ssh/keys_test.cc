#include "platform/ssh/keys.h"

#include <unistd.h>

#include "base/files/files.h"
#include "gtest/gtest.h"
#include "platform/ssh/agent.h"
#include "process/unix_socket.h"
#include "supervise/testing.h"

namespace muster::ssh {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);

class KeysTest : public supervise::LaunchTest {
 protected:
  // Creates the folder of a job whose keys were last renewed at kStart.
  std::string Job(const std::string& name) {
    const std::string folder = base::JoinPath(home_, name);
    EXPECT_TRUE(base::MakeDirectories(base::JoinPath(folder, "tls")).ok());
    EXPECT_TRUE(base::WriteFileAtomically(base::JoinPath(folder, "tls/tls.key"), "secret").ok());
    KeyLease(folder).Advance(kStart);
    return folder;
  }
  static bool HasKeys(const std::string& folder) {
    return ::access(base::JoinPath(folder, "tls/tls.key").c_str(), F_OK) == 0;
  }
};

TEST_F(KeysTest, AreRemovedADayAfterTheirAgentLastRan) {
  const std::string job = Job("a@host1");
  RemoveAbandonedKeys(home_, "host1", kStart + absl::Hours(23));
  EXPECT_TRUE(HasKeys(job));
  RemoveAbandonedKeys(home_, "host1", kStart + absl::Hours(25));
  EXPECT_FALSE(HasKeys(job));
}

TEST_F(KeysTest, AreKeptWhileTheAgentOfAnOldJobRuns) {
  const std::string job = Job("a@host1");
  KeyLease lease(job);
  for (absl::Time now = kStart; now < kStart + absl::Hours(100); now = lease.next_timer()) {
    lease.Advance(now);
    ASSERT_GT(lease.next_timer(), now);
  }
  RemoveAbandonedKeys(home_, "host1", kStart + absl::Hours(101));
  EXPECT_TRUE(HasKeys(job));
}

TEST_F(KeysTest, OfAnotherHostInASharedFolderAreKept) {
  const std::string theirs = Job("a@host2"), longer = Job("a@my-host1");
  RemoveAbandonedKeys(home_, "host1", kStart + absl::Hours(1000));
  EXPECT_TRUE(HasKeys(theirs));
  EXPECT_TRUE(HasKeys(longer));
}

TEST_F(KeysTest, OfARunningAgentAreKeptWithoutRenewal) {
  const std::string job = Job("a@host1");
  const auto loop = *process::EventLoop::Create();
  const auto agent = process::UnixListener::Serve(job, kAgentSocket, *loop, [](base::UniqueFd) {});
  ASSERT_TRUE(agent.ok()) << agent.status();
  RemoveAbandonedKeys(home_, "host1", kStart + absl::Hours(25));
  EXPECT_TRUE(HasKeys(job));
}

}  // namespace
}  // namespace muster::ssh
