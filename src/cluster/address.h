// "host:port", taken apart and put together. Pure.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace muster {

// What the certificates of a job's tasks are for, whatever their addresses are.
inline constexpr char kTaskTlsName[] = "task.muster";

struct Address {
  std::string host;  // an IPv6 address without its brackets
  int port = 0;
  bool operator==(const Address&) const = default;
};

// Reads "host:2222" and "[::1]:2222". nullopt when the text has no host, no port of 1 to 65535, or
// a character that would break a comma-separated list of hosts or a line.
std::optional<Address> ParseAddress(absl::string_view text);
// The other way round, with brackets where the host needs them.
std::string MakeAddress(absl::string_view host, int port);
// Whether the host is this machine for certain: localhost or an address of the loopback interface.
// A name is not looked up.
bool IsLoopback(absl::string_view host);
// 0 when there is none.
int PortOf(absl::string_view address);

}  // namespace muster
