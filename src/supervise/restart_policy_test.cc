#include "supervise/restart_policy.h"

#include "gtest/gtest.h"
#include "supervise/lifecycle_testing.h"

namespace muster {
namespace {

struct PolicyCase {
  RestartPolicy policy;
  int exit_code;
  TaskState expected;
};

class RestartPolicyTest : public testing::TestWithParam<PolicyCase> {};

TEST_P(RestartPolicyTest, DecidesByExitCode) {
  const auto& [policy, exit_code, expected] = GetParam();
  Play play(Job({Role("chief"), Role("worker", 1, policy)}));
  play.Exit(kWorker0, exit_code);
  EXPECT_EQ(play.StateOf(kWorker0), expected);
  EXPECT_EQ(play.life().ending(), expected == TaskState::kFailed);
}

constexpr TaskState kDone = TaskState::kSucceeded;
constexpr TaskState kFail = TaskState::kFailed;
constexpr TaskState kAgain = TaskState::kRestarting;
INSTANTIATE_TEST_SUITE_P(All, RestartPolicyTest,
                         testing::Values(PolicyCase{RestartPolicy::kNever, 0, kDone},
                                         PolicyCase{RestartPolicy::kNever, 1, kFail},
                                         PolicyCase{RestartPolicy::kNever, 137, kFail},
                                         PolicyCase{RestartPolicy::kOnFailure, 0, kDone},
                                         PolicyCase{RestartPolicy::kOnFailure, 1, kAgain},
                                         PolicyCase{RestartPolicy::kOnFailure, 137, kAgain},
                                         PolicyCase{RestartPolicy::kAlways, 0, kAgain},
                                         PolicyCase{RestartPolicy::kAlways, 1, kAgain},
                                         PolicyCase{RestartPolicy::kAlways, 137, kAgain},
                                         PolicyCase{RestartPolicy::kExitCode, 0, kDone},
                                         PolicyCase{RestartPolicy::kExitCode, 1, kFail},
                                         PolicyCase{RestartPolicy::kExitCode, 127, kFail},
                                         PolicyCase{RestartPolicy::kExitCode, 128, kAgain},
                                         PolicyCase{RestartPolicy::kExitCode, 255, kAgain}));

struct FinalCase {
  RestartPolicy policy;
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
        FinalCase{RestartPolicy::kExitCode, ExitWith(1), 3,
                  "worker:0: exit code 1 is final under `restart: exit-code`; `restart: "
                  "on-failure` retries it"},
        FinalCase{RestartPolicy::kExitCode,
                  {.reason = "fork: try again"},
                  3,
                  "worker:0: a failed start is final under `restart: exit-code`; `restart: "
                  "on-failure` retries it"},
        FinalCase{RestartPolicy::kExitCode, ExitWith(137), 0,
                  "worker:0: policies.max_restarts is 0"},
        FinalCase{RestartPolicy::kOnFailure, ExitWith(1), 2, "worker:0: max_restarts (2) exceeded"},
        FinalCase{RestartPolicy::kNever, ExitWith(137), 3,
                  "worker:0: its role has `restart: never`"},
        FinalCase{
            RestartPolicy::kAlways, {.reason = "command not found", .may_retry = false}, 3, ""}));

}  // namespace
}  // namespace muster
