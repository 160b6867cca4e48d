#include "process/exit_status.h"

#include <signal.h>

#include "gtest/gtest.h"

namespace muster::process {
namespace {

TEST(ExitStatusTest, UsesShellConventions) {
  EXPECT_TRUE(ExitStatus::Exited(0).ok());
  EXPECT_EQ(ExitStatus::Signaled(SIGKILL).code(), 137);
  EXPECT_EQ(ExitStatus::FromWait(3 << 8).code(), 3);
  EXPECT_EQ(ExitStatus::FromWait(SIGSEGV).signal(), SIGSEGV);
}

TEST(ExitStatusTest, Describes) {
  EXPECT_EQ(ExitStatus::Exited(1).Describe(), "exit code 1");
  EXPECT_EQ(ExitStatus::Signaled(SIGKILL).Describe(), "killed by SIGKILL");
  EXPECT_EQ(ExitStatus::Exited(137).Describe(), "exit code 137 (128 + SIGKILL)");
  EXPECT_EQ(ExitStatus::Exited(255).Describe(), "exit code 255");
}

}  // namespace
}  // namespace muster::process
