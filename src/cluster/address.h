// Parses and formats "host:port". Pure functions.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace muster::cluster {

// The server name in the certificates of a job's tasks, independent of their addresses.
inline constexpr char kTaskTlsName[] = "task.muster";

struct Address {
  std::string host;  // an IPv6 address has no brackets here
  int port = 0;
  bool operator==(const Address&) const = default;
};

// Parses "host:2222" and "[::1]:2222". Returns nullopt if the host is missing, the port is not in 1
// to 65535, or a character would break a comma-separated list of hosts or a line.
std::optional<Address> ParseAddress(absl::string_view text);
// The inverse: returns "host:port", with brackets around an IPv6 address.
std::string MakeAddress(absl::string_view host, int port);
// Returns true if the host is certainly this machine: localhost or a loopback address. Does not
// resolve names.
bool IsLoopback(absl::string_view host);
// Returns the port of an address, or 0 if it has none.
int PortOf(absl::string_view address);

}  // namespace muster::cluster
