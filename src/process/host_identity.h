// The identity of a host: a pid means nothing on another machine or in another pid namespace.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "process/identity.h"

namespace muster::process {

// Returns "<machine id>/<boot id>/<pid namespace>/<host name>". Parts that this host lacks are
// empty: minimal containers have no machine id.
std::string ThisHost();

// As FindProcess(), from the point of view of `host`. Exposed for tests.
Existence FindProcessFrom(absl::string_view host, const ProcessIdentity& identity);

}  // namespace muster::process
