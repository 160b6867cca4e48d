// Waiting for other tasks: bounded by a timeout, with a log line at intervals that names them.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster::train {

// Polls until a deadline. Uses Clock::Real(), so setting the machine's clock neither ends nor
// prolongs the wait. Not thread-safe.
class Waiting {
 public:
  Waiting(absl::Duration timeout, absl::Duration report_interval,
          std::function<void(const std::string&)> log);

  // Returns the time until the deadline, or zero if it has passed.
  absl::Duration left() const;
  // Sleeps until the next poll and logs at intervals what is `missing`. Returns DeadlineExceeded
  // with `missing` as its message if the deadline has passed.
  absl::Status Pause(const std::string& missing);

 private:
  const absl::Time deadline_;
  const absl::Duration report_interval_;
  const std::function<void(const std::string&)> log_;
  absl::Time report_at_;
};

// Returns DeadlineExceeded: "timed out after 5m waiting for worker:1".
absl::Status TimedOut(absl::Duration timeout, absl::string_view missing);

// Returns DeadlineExceeded: "no response within 5s". The time is rounded up to 10 ms.
absl::Status NoAnswer(absl::Duration timeout);

// As TimedOut, for a task that had joined the others. A server that does not answer is named as the
// cause: "lost contact with ps:0 (no response within 5s); timed out after 30m".
absl::Status LostContact(absl::Duration timeout, absl::string_view missing);

}  // namespace muster::train
