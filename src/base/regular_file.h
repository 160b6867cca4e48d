// Files that another program may have put there in any form.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace muster {

// The whole of a regular file. Never waits, as open() does for a FIFO and read() for a device.
// NotFound when it is absent, FailedPrecondition when it is not a regular file, OutOfRange when it
// is larger than `max_bytes`.
absl::StatusOr<std::string> ReadRegularFile(const std::string& path, int64_t max_bytes);

}  // namespace muster
