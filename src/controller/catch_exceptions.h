// Converts exceptions to statuses.
#pragma once

#include <functional>

#include "absl/status/status.h"

namespace muster::controller {

// Returns the result of `work`. An exception becomes Internal, for which IsFromException() is
// true: it is a bug that some input triggers. std::bad_alloc becomes ResourceExhausted.
absl::Status CatchExceptions(const std::function<absl::Status()>& work);
bool IsFromException(const absl::Status& status);

}  // namespace muster::controller
