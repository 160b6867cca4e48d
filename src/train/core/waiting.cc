#include "train/core/waiting.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock.h"

namespace muster::train {
namespace {

constexpr absl::Duration kPollInterval = absl::Milliseconds(20);

}  // namespace

Waiting::Waiting(absl::Duration timeout, absl::Duration report_interval,
                 std::function<void(const std::string&)> log)
    : deadline_(base::Clock::Real().Now() + timeout),
      report_interval_(report_interval),
      log_(std::move(log)),
      report_at_(base::Clock::Real().Now() + report_interval) {}

absl::Duration Waiting::left() const {
  return std::max(absl::ZeroDuration(), deadline_ - base::Clock::Real().Now());
}

absl::Status Waiting::Pause(const std::string& missing) {
  const absl::Time now = base::Clock::Real().Now();
  if (now > deadline_) return absl::DeadlineExceededError(missing);
  if (now > report_at_) {
    report_at_ = now + report_interval_;
    log_(absl::StrCat("waiting for ", missing));
  }
  absl::SleepFor(kPollInterval);
  return absl::OkStatus();
}

absl::Status TimedOut(absl::Duration timeout, absl::string_view missing) {
  return absl::DeadlineExceededError(
      absl::StrCat("timed out after ", absl::FormatDuration(timeout), " waiting for ", missing));
}

absl::Status NoAnswer(absl::Duration timeout) {
  return absl::DeadlineExceededError(absl::StrCat(
      "no response within ", absl::FormatDuration(absl::Ceil(timeout, absl::Milliseconds(10)))));
}

absl::Status LostContact(absl::Duration timeout, absl::string_view missing) {
  if (!absl::StartsWith(missing, "ps:")) return TimedOut(timeout, missing);
  return absl::DeadlineExceededError(absl::StrCat(
      "lost contact with ", missing, "; timed out after ", absl::FormatDuration(timeout)));
}

}  // namespace muster::train
