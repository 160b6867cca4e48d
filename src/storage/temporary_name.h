// Names of files that are being written, in the folder of their target.
#pragma once

#include <string>

namespace muster::storage {

// The common prefix of these names. Listings leave them out.
inline constexpr char kTemporaryPrefix[] = ".muster-tmp-";

// Returns a new random name.
std::string TemporaryName();

}  // namespace muster::storage
