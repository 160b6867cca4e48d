// Reads small files that tasks write without synchronization.
#pragma once

#include <optional>
#include <string>

namespace muster::jobs {

// Returns the content, or nullopt if the file is absent, empty, larger than 64 KiB or not a regular
// file. Never blocks, even if the path is a pipe.
std::optional<std::string> ReadUntrustedFile(const std::string& path);

}  // namespace muster::jobs
