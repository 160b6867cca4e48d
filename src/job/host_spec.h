// A machine that a job may run on, as the user names it: in --hosts, or under `hosts` in a job
// file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

struct HostSpec {
  // What it is called in tables and messages: its address, and its port where the user gave one.
  // Unique among the hosts of a job.
  std::string name;
  std::string
      address;       // what ssh connects to, or a Host of its configuration; IPv6 without brackets
  std::string user;  // "": ssh's choice
  int port = 0;      // 0: ssh's choice
  std::string key;   // an absolute path, or one that begins with "~/"; "": ssh's choice
  // How many tasks it may hold; 0: any number. Without: one where another host has slots, else see
  // ssh::Place.
  std::optional<int> slots;
  std::vector<std::string> roles;  // that it may hold; empty: any
  bool operator==(const HostSpec&) const = default;
};

// Limits, named in the messages and in docs/job-file.md.
inline constexpr int kMaxHosts = 1000;
inline constexpr int kMaxSlots = 4096;

// "vm1", "me@gpu1:4", "[fe80::1]:2": what follows the colon is the number of slots. InvalidArgument
// says what is wrong with it.
absl::StatusOr<HostSpec> ParseHost(absl::string_view text);
// Several, with commas between, as in --hosts. InvalidArgument with every mistake, one a line.
absl::StatusOr<std::vector<HostSpec>> ParseHosts(absl::string_view text);

// InvalidArgument when ssh might take it for something else, or it cannot be one.
absl::Status CheckHostAddress(absl::string_view address);
absl::Status CheckHostUser(absl::string_view user);

// What a host is called.
std::string HostName(absl::string_view address, int port);

}  // namespace muster
