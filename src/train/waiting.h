// Waiting for other tasks: bounded by a timeout, with a line now and then that names them.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster::train {

// Measured with Clock::Real(): setting the machine's clock neither ends nor prolongs it.
class Waiting {
 public:
  Waiting(absl::Duration timeout, absl::Duration report_interval,
          std::function<void(const std::string&)> log);

  // The time that is left; not negative.
  absl::Duration left() const;
  // Sleeps before the next look. DeadlineExceeded, with `missing` as it is, when the time is over.
  absl::Status Pause(const std::string& missing);

 private:
  const absl::Time deadline_;
  const absl::Duration report_interval_;
  const std::function<void(const std::string&)> log_;
  absl::Time report_at_;
};

// DeadlineExceeded: "timed out after 5m waiting for worker:1".
absl::Status TimedOut(absl::Duration timeout, absl::string_view missing);

// DeadlineExceeded: "no answer within 5s", rounded up to 10 ms.
absl::Status NoAnswer(absl::Duration timeout);

// As TimedOut, for a task that was at work with the others; a silent server is named as the
// culprit: "lost contact with ps:0 (no answer within 5s); timed out after 30m".
absl::Status LostContact(absl::Duration timeout, absl::string_view missing);

}  // namespace muster::train
