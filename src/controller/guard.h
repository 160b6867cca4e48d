// Turns exceptions into statuses.
#pragma once

#include <functional>

#include "absl/status/status.h"

namespace muster::controller {

// What `work` returns. An exception that leaves it, which is a mistake of ours that some input
// brings out, becomes Internal, and IsThrown() is true of it.
absl::Status Guarded(const std::function<absl::Status()>& work);
bool IsThrown(const absl::Status& status);

}  // namespace muster::controller
