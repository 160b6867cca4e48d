#include "platform/ssh/keys.h"

#include <unistd.h>

#include "base/files.h"
#include "gtest/gtest.h"
#include "platform/ssh/agent.h"
#include "process/unix_socket.h"
#include "supervise/testing.h"

namespace muster::ssh {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);

class KeysTest : public LaunchTest {
 protected:
  // Creates the folder of a job whose keys were last renewed at kStart.
  std::string Job(const std::string& name) {
    const std::string folder = JoinPath(home_, name);
    EXPECT_TRUE(MakeDirectories(JoinPath(folder, "tls")).ok());
    EXPECT_TRUE(WriteFileAtomically(JoinPath(folder, "tls/tls.key"), "secret").ok());
    KeyLease(folder).Advance(kStart);
    return folder;
  }
  static bool HasKeys(const std::string& folder) {
    return ::access(JoinPath(folder, "tls/tls.key").c_str(), F_OK) == 0;
  }
};

TEST_F(KeysTest, AreRemovedADayAfterTheirAgentLastLived) {
  const std::string job = Job("a@host1");
  RemoveAbandonedKeys(home_, "host1", kStart + absl::Hours(23));
  EXPECT_TRUE(HasKeys(job));
  RemoveAbandonedKeys(home_, "host1", kStart + absl::Hours(25));
  EXPECT_FALSE(HasKeys(job));
}

TEST_F(KeysTest, AreKeptHoweverOldTheJobIsWhoseAgentLivedUntilNow) {
  const std::string job = Job("a@host1");
  KeyLease lease(job);
  for (absl::Time now = kStart; now < kStart + absl::Hours(100); now = lease.next_timer()) {
    lease.Advance(now);
    ASSERT_GT(lease.next_timer(), now);
  }
  RemoveAbandonedKeys(home_, "host1", kStart + absl::Hours(101));
  EXPECT_TRUE(HasKeys(job));
}

TEST_F(KeysTest, OfAnotherHostThatSharesTheFolderAreLeftAlone) {
  const std::string theirs = Job("a@host2"), longer = Job("a@my-host1");
  RemoveAbandonedKeys(home_, "host1", kStart + absl::Hours(1000));
  EXPECT_TRUE(HasKeys(theirs));
  EXPECT_TRUE(HasKeys(longer));
}

TEST_F(KeysTest, OfAnAgentThatServesAreKeptThoughNobodyRenewedThem) {
  const std::string job = Job("a@host1");
  const auto loop = *EventLoop::Create();
  const auto agent = UnixListener::Serve(job, kAgentSocket, *loop, [](UniqueFd) {});
  ASSERT_TRUE(agent.ok()) << agent.status();
  RemoveAbandonedKeys(home_, "host1", kStart + absl::Hours(25));
  EXPECT_TRUE(HasKeys(job));
}

}  // namespace
}  // namespace muster::ssh
