#include "supervise/restart_limits.h"

#include "gtest/gtest.h"
#include "supervise/lifecycle_testing.h"

namespace muster::supervise {
namespace {

struct PolicyCase {
  job::RestartPolicy policy;
  int exit_code;
  job::TaskState expected;
};

class RestartLimitsTest : public testing::TestWithParam<PolicyCase> {};

TEST_P(RestartLimitsTest, DecidesByExitCode) {
  const auto& [policy, exit_code, expected] = GetParam();
  Play play(Job({Role("chief"), Role("worker", 1, policy)}));
  play.Exit(kWorker0, exit_code);
  EXPECT_EQ(play.StateOf(kWorker0), expected);
  EXPECT_EQ(play.life().ending(), expected == job::TaskState::kFailed);
}

constexpr job::TaskState kDone = job::TaskState::kSucceeded;
constexpr job::TaskState kFail = job::TaskState::kFailed;
constexpr job::TaskState kAgain = job::TaskState::kRestarting;
INSTANTIATE_TEST_SUITE_P(All, RestartLimitsTest,
                         testing::Values(PolicyCase{job::RestartPolicy::kNever, 0, kDone},
                                         PolicyCase{job::RestartPolicy::kNever, 1, kFail},
                                         PolicyCase{job::RestartPolicy::kNever, 137, kFail},
                                         PolicyCase{job::RestartPolicy::kOnFailure, 0, kDone},
                                         PolicyCase{job::RestartPolicy::kOnFailure, 1, kAgain},
                                         PolicyCase{job::RestartPolicy::kOnFailure, 137, kAgain},
                                         PolicyCase{job::RestartPolicy::kAlways, 0, kAgain},
                                         PolicyCase{job::RestartPolicy::kAlways, 1, kAgain},
                                         PolicyCase{job::RestartPolicy::kAlways, 137, kAgain},
                                         PolicyCase{job::RestartPolicy::kExitCode, 0, kDone},
                                         PolicyCase{job::RestartPolicy::kExitCode, 1, kFail},
                                         PolicyCase{job::RestartPolicy::kExitCode, 127, kFail},
                                         PolicyCase{job::RestartPolicy::kExitCode, 128, kAgain},
                                         PolicyCase{job::RestartPolicy::kExitCode, 255, kAgain}));

struct FinalCase {
  job::RestartPolicy policy;
  AttemptEnd end;
  int max_restarts;
  std::string expected;
};

class WhyFinalTest : public testing::TestWithParam<FinalCase> {};

TEST_P(WhyFinalTest, TheReportNamesTheSetting) {
  const auto& [policy, end, max_restarts, expected] = GetParam();
  Play play(Job({Role("worker", 1, policy)}, {.max_restarts = max_restarts}));
  play.End(kWorker0, end);
  while (!play.life().done()) {
    play.Pass(absl::Minutes(1));
    play.End(kWorker0, end);
  }
  EXPECT_EQ(play.life().failure()->not_restarted, expected);
}

INSTANTIATE_TEST_SUITE_P(
    All, WhyFinalTest,
    testing::Values(
        FinalCase{job::RestartPolicy::kExitCode, ExitWith(1), 3,
                  "worker:0: exit code 1 is final under `restart: exit-code`; `restart: "
                  "on-failure` retries it"},
        FinalCase{job::RestartPolicy::kExitCode,
                  {.reason = "fork: try again"},
                  3,
                  "worker:0: a failed start is final under `restart: exit-code`; `restart: "
                  "on-failure` retries it"},
        FinalCase{job::RestartPolicy::kExitCode, ExitWith(137), 0,
                  "worker:0: policies.max_restarts is 0"},
        FinalCase{job::RestartPolicy::kOnFailure, ExitWith(1), 2,
                  "worker:0: max_restarts (2) exceeded"},
        FinalCase{job::RestartPolicy::kNever, ExitWith(137), 3,
                  "worker:0: its role has `restart: never`"},
        FinalCase{job::RestartPolicy::kAlways,
                  {.reason = "command not found", .may_retry = false},
                  3,
                  ""}));

}  // namespace
}  // namespace muster::supervise
