#include "process/event_loop.h"

#include <signal.h>
#include <unistd.h>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace muster::process {
namespace {

TEST(EventLoopTest, DispatchesDescriptorsAndSignals) {
  auto loop = *EventLoop::Create();
  int fds[2];
  ASSERT_EQ(::pipe(fds), 0);
  int readable = 0;
  ASSERT_TRUE(loop->AddFd(fds[0], EPOLLIN,
                          [&](uint32_t) {
                            ++readable;
                            loop->RemoveFd(fds[0]);  // a handler may remove itself
                          })
                  .ok());
  std::vector<int> signals;
  ASSERT_TRUE(loop->HandleSignals({SIGUSR1}, [&](int signal) { signals.push_back(signal); }).ok());

  ASSERT_EQ(::write(fds[1], "x", 1), 1);
  ::raise(SIGUSR1);
  while (readable == 0 || signals.empty()) ASSERT_TRUE(loop->Wait(absl::Seconds(10)).ok());
  EXPECT_EQ(signals, std::vector<int>{SIGUSR1});

  // Removed: still readable, no longer reported.
  ASSERT_TRUE(loop->Wait(absl::ZeroDuration()).ok());
  EXPECT_EQ(readable, 1);
  ::close(fds[0]);
  ::close(fds[1]);
}

TEST(EventLoopTest, APausedDescriptorIsReportedWhenThePauseIsOver) {
  auto loop = *EventLoop::Create();
  int fds[2];
  ASSERT_EQ(::pipe(fds), 0);
  ASSERT_EQ(::write(fds[1], "x", 1), 1);
  int readable = 0;
  ASSERT_TRUE(loop->AddFd(fds[0], EPOLLIN, [&](uint32_t) { ++readable; }).ok());
  loop->PauseFd(fds[0], absl::Hours(1));
  ASSERT_TRUE(loop->Wait(absl::ZeroDuration()).ok());
  EXPECT_EQ(readable, 0);
  const absl::Time before = absl::Now();
  loop->PauseFd(fds[0], absl::Milliseconds(50));
  while (readable == 0) ASSERT_TRUE(loop->Wait(absl::Seconds(10)).ok());
  EXPECT_GE(absl::Now() - before, absl::Milliseconds(49));
  EXPECT_LT(absl::Now() - before, absl::Seconds(9));
  // Removing a paused descriptor drops its pause.
  loop->PauseFd(fds[0], absl::ZeroDuration());
  loop->RemoveFd(fds[0]);
  ASSERT_TRUE(loop->Wait(absl::ZeroDuration()).ok());
  EXPECT_EQ(readable, 1);
  ::close(fds[0]);
  ::close(fds[1]);
}

TEST(EventLoopTest, WaitsAtLeastTheTimeout) {
  auto loop = *EventLoop::Create();
  const absl::Time before = absl::Now();
  ASSERT_TRUE(loop->Wait(absl::Microseconds(1500)).ok());
  EXPECT_GE(absl::Now() - before, absl::Microseconds(1500));
}

}  // namespace
}  // namespace muster::process
