// Test helpers: TCP sockets on the loopback interface.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "base/files/unique_fd.h"

namespace muster::train::wire {

// Returns a socket bound to a free port and stores its address.
base::UniqueFd BindAnywhere(std::string& address);
// Returns 127.0.0.1 with a port that is free now.
std::string FreeAddress();
base::UniqueFd ConnectTo(const std::string& address);
// Returns false if the peer has closed the connection.
bool SendAll(int socket, absl::string_view bytes);

}  // namespace muster::train::wire
