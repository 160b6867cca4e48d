// Runs work on many hosts in parallel, and checks that the hosts reach each other.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "job/host_spec.h"
#include "platform/ssh/setup_client.h"

namespace muster::ssh {

// Concurrent logins that an sshd, possibly that of a jump host, accepts by default (MaxStartups).
inline constexpr size_t kMaxConcurrentLogins = 10;

// Calls work(0) to work(count - 1), at most `parallelism` at a time. Returns all errors, one per
// line, with the code of the first.
absl::Status ForEach(size_t count, const std::function<absl::Status(size_t)>& work,
                     size_t parallelism = job::kMaxHosts);

struct Peer {
  SetupClient* session;
  std::string address;          // at which the other hosts reach it
  std::vector<int> ports = {};  // fixed by the user for tasks on this host
};

// Checks that every host reaches every other at a port of the kind that tasks are given, and at the
// ports fixed by the user. Returns FailedPrecondition that lists every blocked pair and the remedy.
absl::Status CheckConnectivity(const std::vector<Peer>& peers);

}  // namespace muster::ssh
