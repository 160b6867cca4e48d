// Waiting for others: not for ever, and saying now and then for whom.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace muster::train {

class Waiting {
 public:
  Waiting(absl::Duration timeout, absl::Duration report_interval,
          std::function<void(const std::string&)> log);

  absl::Time deadline() const { return deadline_; }
  // Sleeps before the next look. DeadlineExceeded, with `missing` as it is, when the time is over.
  absl::Status Pause(const std::string& missing);

 private:
  const absl::Time deadline_;
  const absl::Duration report_interval_;
  const std::function<void(const std::string&)> log_;
  absl::Time report_at_;
};

// "waited 5m in vain for worker:1", for the user.
absl::Status InVain(absl::Duration timeout, absl::string_view missing);

}  // namespace muster::train
