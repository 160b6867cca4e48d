#include "job/restart_policy.h"

namespace muster::job {
namespace {

constexpr int kFirstRetryable = 128;  // 128 + n is the exit code for signal n

}  // namespace

bool RetriesFailure(RestartPolicy policy, std::optional<int> exit_code) {
  switch (policy) {
    case RestartPolicy::kNever:
      return false;
    case RestartPolicy::kOnFailure:
    case RestartPolicy::kAlways:
      return true;
    case RestartPolicy::kExitCode:
      return exit_code.value_or(kUnknownExitCode) >= kFirstRetryable;
  }
  return false;
}

}  // namespace muster::job
