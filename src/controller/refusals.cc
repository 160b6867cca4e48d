#include "controller/refusals.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "k8s/error.h"

namespace muster::controller {
namespace {

constexpr absl::Duration kFirstDelay = absl::Seconds(5);
constexpr absl::Duration kMaxDelay = absl::Minutes(5);
// Objects that were refused one after another are tried again together, in one pass.
constexpr absl::Duration kTick = absl::Seconds(5);

absl::Time NextTick(absl::Time time) {
  return absl::UnixEpoch() + absl::Ceil(time - absl::UnixEpoch(), kTick);
}

}  // namespace

bool IsRefusal(const absl::Status& status) {
  if (absl::IsAlreadyExists(status)) return true;  // by another's object of that name
  const auto error = k8s::ApiErrorOf(status);
  if (!error || error->code < 400 || error->code >= 500) return false;
  const int code = error->code;
  return code != 401 && code != 408 && code != 409 && code != 429;
}

void AddRefusal(Refusals& refusals, const ObjectName& object, const absl::Status& status,
                absl::Time now) {
  Refusal& refusal = refusals[object];
  const absl::Duration delay = kFirstDelay * std::exp2(std::min(refusal.times++, 20));
  refusal.next = NextTick(now + std::min(delay, kMaxDelay));
  refusal.message = std::string(status.message());
}

std::string Describe(const Refusals& refusals) {
  const size_t others = refusals.size() - 1;
  return absl::StrCat(refusals.begin()->second.message,
                      others == 0 ? "" : absl::StrCat(" (and ", others, " more)"));
}

}  // namespace muster::controller
