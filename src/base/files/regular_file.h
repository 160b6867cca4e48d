// Reads files whose type is not under our control.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace muster::base {

// Returns the content of a regular file. Never blocks on a FIFO or a device. Returns NotFound if
// the file is absent, FailedPrecondition if it is not a regular file, OutOfRange if it is larger
// than `max_bytes`.
absl::StatusOr<std::string> ReadRegularFile(const std::string& path, int64_t max_bytes);

}  // namespace muster::base
