// A machine on which a job may run, as given in --hosts or under `hosts` in a job file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::job {

struct HostSpec {
  // The name in tables and messages: the address, with the port if the user gave one. Unique among
  // the hosts of a job.
  std::string name;
  // The address or the Host of the ssh configuration; IPv6 without brackets.
  std::string address;
  std::string user;  // "": ssh's choice
  int port = 0;      // 0: ssh's choice
  std::string key;   // an absolute path, or one that begins with "~/"; "": ssh's choice
  // Maximum number of tasks; 0 = no limit. If not set, the limit is 1 if another host has slots;
  // otherwise see ssh::Place.
  std::optional<int> slots;
  std::vector<std::string> roles;  // that it may run; empty = any
  bool operator==(const HostSpec&) const = default;
};

// Limits. docs/job-file.md lists them.
inline constexpr int kMaxHosts = 1000;
inline constexpr int kMaxSlots = 4096;

// Parses "vm1", "me@gpu1:4" or "[fe80::1]:2". The number after the colon is the number of slots.
// Returns InvalidArgument with the expected form.
absl::StatusOr<HostSpec> ParseHost(absl::string_view text);
// Parses a comma-separated list of hosts, as in --hosts. Returns InvalidArgument with all mistakes,
// one per line.
absl::StatusOr<std::vector<HostSpec>> ParseHosts(absl::string_view text);

// Return InvalidArgument if the text is not valid, or if ssh could read it as an option.
absl::Status CheckHostAddress(absl::string_view address);
absl::Status CheckHostUser(absl::string_view user);

// Returns HostSpec::name of a host.
std::string HostName(absl::string_view address, int port);

}  // namespace muster::job
