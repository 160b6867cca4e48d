#include "job/restart_policy.h"

#include "gtest/gtest.h"

namespace muster::job {
namespace {

TEST(RestartPolicyTest, ExitCodesFrom128OnAreRetriedUnderExitCode) {
  EXPECT_FALSE(RetriesFailure(RestartPolicy::kExitCode, 1));
  EXPECT_FALSE(RetriesFailure(RestartPolicy::kExitCode, 127));
  EXPECT_TRUE(RetriesFailure(RestartPolicy::kExitCode, 128));
  EXPECT_TRUE(RetriesFailure(RestartPolicy::kExitCode, 137));
}

TEST(RestartPolicyTest, AnUnknownExitCodeIsFinalUnderExitCode) {
  EXPECT_FALSE(RetriesFailure(RestartPolicy::kExitCode, std::nullopt));
}

TEST(RestartPolicyTest, OtherPoliciesDoNotDependOnTheExitCode) {
  for (const std::optional<int> code :
       {std::optional<int>(), std::optional<int>(1), std::optional<int>(137)}) {
    EXPECT_FALSE(RetriesFailure(RestartPolicy::kNever, code));
    EXPECT_TRUE(RetriesFailure(RestartPolicy::kOnFailure, code));
    EXPECT_TRUE(RetriesFailure(RestartPolicy::kAlways, code));
  }
}

}  // namespace
}  // namespace muster::job
