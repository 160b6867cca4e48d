#include "process/unix_socket.h"

#include <unistd.h>

#include <vector>

#include "base/clock.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "gtest/gtest.h"

namespace muster::process {
namespace {

class UnixSocketTest : public testing::Test {
 protected:
  std::unique_ptr<UnixListener> Serve() {
    auto listener = UnixListener::Serve(
        home_, "sock", *loop_, [this](base::UniqueFd fd) { accepted_.push_back(std::move(fd)); });
    EXPECT_TRUE(listener.ok()) << listener.status();
    return *std::move(listener);
  }

  void AcceptUntil(size_t count) {
    const absl::Time give_up = base::Clock::Real().Now() + absl::Seconds(30);
    while (accepted_.size() < count && base::Clock::Real().Now() < give_up) {
      ASSERT_TRUE(loop_->Wait(absl::Seconds(1)).ok());
    }
    ASSERT_EQ(accepted_.size(), count);
  }

  const base::TempDir temp_;
  const std::string home_ = temp_.path();
  std::unique_ptr<EventLoop> loop_ = *EventLoop::Create();
  std::vector<base::UniqueFd> accepted_;
};

TEST_F(UnixSocketTest, DestructorRemovesTheSocketFile) {
  auto listener = Serve();
  EXPECT_TRUE(ConnectTo(home_, "sock").ok());
  listener.reset();
  EXPECT_EQ(::access(base::JoinPath(home_, "sock").c_str(), F_OK), -1);
  EXPECT_EQ(ConnectTo(home_, "sock").status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(UnixSocketTest, DestructorKeepsTheSocketFileOfASuccessor) {
  auto first = Serve();
  auto second = Serve();
  first.reset();
  EXPECT_TRUE(ConnectTo(home_, "sock").ok());
}

TEST_F(UnixSocketTest, ConnectionsWaitWithoutSpinningWhenOutOfDescriptors) {
  const auto listener = Serve();
  // One connection before the shortage: UndefinedBehaviorSanitizer opens a pipe to check each
  // object type on first use.
  ASSERT_TRUE(ConnectTo(home_, "sock").ok());
  AcceptUntil(1);
  const auto client = ConnectTo(home_, "sock");
  ASSERT_TRUE(client.ok()) << client.status();
  int turns = 0;
  {
    const base::NoDescriptors none;
    const absl::Time end = base::Clock::Real().Now() + absl::Milliseconds(300);
    for (; base::Clock::Real().Now() < end; ++turns) {
      ASSERT_TRUE(loop_->Wait(end - base::Clock::Real().Now()).ok());
    }
  }
  EXPECT_EQ(accepted_.size(), 1u);
  EXPECT_LE(turns, 10);
  AcceptUntil(2);
}

}  // namespace
}  // namespace muster::process
