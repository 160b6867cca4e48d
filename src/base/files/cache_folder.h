// The per-user cache folder, and folders that no other user of the machine can tamper with.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "base/variables.h"

namespace muster::base {

// Returns the folder for files that can be downloaded or built again: $XDG_CACHE_HOME/muster, else
// ~/.cache/muster, else (no HOME) /tmp/muster-UID. Does not create it.
std::string UserCacheFolder(const Variables& variables);

// Creates the folder and its missing parents (mode 0700), then checks that no other user can
// replace it or write into it: inside a world-writable folder such as /tmp, the next component must
// belong to this user or to root, and `path` itself must not be world-writable. Returns
// PermissionDenied, with the folder and its owner, if the check fails.
absl::Status MakeTrustedFolder(const std::string& path);

}  // namespace muster::base
