#include "controller/rules/create_failures.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "k8s/error.h"

namespace muster::controller {
namespace {

constexpr absl::Duration kFirstCreateDelay = absl::Seconds(5);
constexpr absl::Duration kMaxCreateDelay = absl::Minutes(5);
// Retries are rounded up to a multiple of this, so that objects that were rejected one after
// another are retried together.
constexpr absl::Duration kRetryGranularity = absl::Seconds(5);

absl::Time RoundUp(absl::Time time) {
  return absl::UnixEpoch() + absl::Ceil(time - absl::UnixEpoch(), kRetryGranularity);
}

}  // namespace

bool IsRejected(const absl::Status& status) {
  if (absl::IsAlreadyExists(status)) return true;  // an object of that name has another owner
  const auto error = k8s::ApiErrorOf(status);
  if (!error || error->code < 400 || error->code >= 500) return false;
  const int code = error->code;
  // These pass with time, with a renewed credential or with a retry.
  return code != 401 && code != 408 && code != 409 && code != 429;
}

void AddCreateFailure(CreateFailures& failures, const ObjectName& object,
                      const absl::Status& status, absl::Time now) {
  CreateFailure& failure = failures[object];
  const absl::Duration delay = kFirstCreateDelay * std::exp2(std::min(failure.times++, 20));
  failure.next = RoundUp(now + std::min(delay, kMaxCreateDelay));
  failure.message = std::string(status.message());
}

std::string Describe(const CreateFailures& failures) {
  const size_t others = failures.size() - 1;
  return absl::StrCat(failures.begin()->second.message,
                      others == 0 ? "" : absl::StrCat(" (and ", others, " more)"));
}

}  // namespace muster::controller
