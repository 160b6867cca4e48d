// Small files that a task writes whenever and however it likes.
#pragma once

#include <optional>
#include <string>

namespace muster::cli {

// nullopt when it is absent, empty, larger than 64 KiB or no file at all. Never waits, as for a
// pipe.
std::optional<std::string> ReadUntrustedFile(const std::string& path);

}  // namespace muster::cli
