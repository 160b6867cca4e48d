#include "process/run.h"

#include <signal.h>

#include <string>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::process {
namespace {

absl::StatusOr<RunResult> Shell(const std::string& script, absl::Duration timeout,
                                size_t max_bytes = 64 << 10) {
  return Run({.argv = {"sh", "-c", script}, .env = CurrentEnvironment()}, timeout, max_bytes);
}

TEST(RunTest, ReturnsOutputAndExitStatus) {
  const auto result = Shell("echo out; echo error >&2; exit 3", absl::Seconds(20));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->output, "out\nerror\n");
  EXPECT_EQ(result->exit.code(), 3);
}

TEST(RunTest, DropsOutputBeyondTheLimit) {
  const auto result = Shell("head -c 1000000 /dev/zero; echo end", absl::Seconds(20), 1000);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->output.size(), 1000);
  EXPECT_TRUE(result->exit.ok());
}

TEST(RunTest, DoesNotWaitForBackgroundProcesses) {
  const absl::Time start = absl::Now();
  const auto result = Shell("sleep 30 & echo $!", absl::Seconds(20));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
  ::kill(std::stoi(result->output), SIGKILL);
}

TEST(RunTest, KillsOnTimeout) {
  const absl::Time start = absl::Now();
  const auto result = Shell("sleep 30; true", absl::Milliseconds(200));
  EXPECT_TRUE(absl::IsDeadlineExceeded(result.status())) << result.status();
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
}

TEST(RunTest, CancellationEndsTheWholeGroup) {
  const absl::Time start = absl::Now();
  // The shell handles SIGTERM, as a program that cleans up does; its child runs until it is killed.
  const auto result = process::Run(
      {.argv = {"sh", "-c", "trap 'exit 1' TERM; sleep 30; true"}, .env = CurrentEnvironment()},
      absl::Seconds(30), 1000, [start] { return absl::Now() > start + absl::Milliseconds(300); });
  EXPECT_TRUE(absl::IsCancelled(result.status())) << result.status();
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
}

TEST(RunTest, MissingProgramIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(
      process::Run({.argv = {"/no/such/program"}, .env = {}}, absl::Seconds(1)).status()));
}

TEST(WaitOrKillTest, KillsOnTimeout) {
  const auto pid = Spawn({.argv = {"sleep", "30"}, .env = CurrentEnvironment()});
  ASSERT_TRUE(pid.ok()) << pid.status();
  EXPECT_EQ(WaitOrKill(*pid, absl::ZeroDuration()).signal(), SIGKILL);
  const auto quick = Spawn({.argv = {"false"}, .env = CurrentEnvironment()});
  ASSERT_TRUE(quick.ok()) << quick.status();
  EXPECT_EQ(WaitOrKill(*quick, absl::Seconds(20)).code(), 1);
}

}  // namespace
}  // namespace muster::process
