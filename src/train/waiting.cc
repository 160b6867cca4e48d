#include "train/waiting.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace muster::train {
namespace {

constexpr absl::Duration kInterval = absl::Milliseconds(20);

}  // namespace

Waiting::Waiting(absl::Duration timeout, absl::Duration report_interval,
                 std::function<void(const std::string&)> log)
    : deadline_(absl::Now() + timeout),
      report_interval_(report_interval),
      log_(std::move(log)),
      report_at_(absl::Now() + report_interval) {}

absl::Status Waiting::Pause(const std::string& missing) {
  const absl::Time now = absl::Now();
  if (now > deadline_) return absl::DeadlineExceededError(missing);
  if (now > report_at_) {
    report_at_ = now + report_interval_;
    log_(absl::StrCat("waiting for ", missing));
  }
  absl::SleepFor(kInterval);
  return absl::OkStatus();
}

absl::Status InVain(absl::Duration timeout, absl::string_view missing) {
  return absl::DeadlineExceededError(
      absl::StrCat("waited ", absl::FormatDuration(timeout), " in vain for ", missing));
}

}  // namespace muster::train
