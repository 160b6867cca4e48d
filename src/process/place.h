// Where processes are: pids mean nothing on another machine or in another container.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "process/identity.h"

namespace muster {

// "<machine id>/<boot id>/<pid namespace>/<host name>". A part that this machine does not have is
// empty: minimal containers have no machine id.
std::string ThisPlace();

// Find() from the place `here`.
Existence FindFrom(absl::string_view here, const ProcessIdentity& identity);

}  // namespace muster
