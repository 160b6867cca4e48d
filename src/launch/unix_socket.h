// Unix sockets in folders of this user's.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace muster {

// Takes the place of what has the name; does not block. The folder may have a name of any length.
absl::StatusOr<UniqueFd> ListenAt(const std::string& folder, const std::string& name);
// Invalid when nobody waits, or it is another user.
UniqueFd AcceptSameUser(const UniqueFd& listener);
// Unavailable when nobody serves there.
absl::StatusOr<UniqueFd> ConnectTo(const std::string& folder, const std::string& name);

}  // namespace muster
