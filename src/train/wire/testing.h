// For tests of listeners: TCP sockets of the loopback interface.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "base/unique_fd.h"

namespace muster::train::wire {

// Bound to a port that nobody had.
UniqueFd BindAnywhere(std::string& address);
// 127.0.0.1 with a port that nobody has now.
std::string FreeAddress();
UniqueFd ConnectTo(const std::string& address);
// False when the other end has hung up.
bool SendAll(int socket, absl::string_view bytes);

}  // namespace muster::train::wire
