// Folders that only this user may write to, although others may write beside them.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "base/variables.h"

namespace muster {

// Where Muster keeps what it can get again: $XDG_CACHE_HOME/muster or ~/.cache/muster; for a user
// without a home /tmp/muster-UID.
std::string UserCacheFolder(const Variables& variables);

// Makes the folder and those above it that are missing (0700), and checks that no other user of
// this machine can have put something else in its place or into it: in a folder that everybody may
// write to, such as /tmp, the next one must belong to this user or to root, and the folder itself
// must not be such a one. PermissionDenied names the folder and its owner.
absl::Status MakeTrustedFolder(const std::string& path);

}  // namespace muster
