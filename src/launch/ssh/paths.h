// Work that is done for many hosts at once, and what they must all be able to do: reach each other.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "job/host_spec.h"
#include "launch/ssh/session.h"

namespace muster::ssh {

// As many as an sshd, which may be that of a jump host, lets begin at once.
inline constexpr size_t kConnectsAtOnce = 10;

// Does it for every host, for as many at once. All errors, a line each, with the code of the first.
absl::Status ForEach(size_t count, const std::function<absl::Status(size_t)>& work,
                     size_t at_once = kMaxHosts);

struct Peer {
  Session* session;
  std::string address;          // that the others know it by
  std::vector<int> ports = {};  // that the user chose for tasks there
};

// Every host tries to reach a port of every other, such as tasks are given, and those that the user
// chose. FailedPrecondition names every pair that cannot, and what to do.
absl::Status CheckPaths(const std::vector<Peer>& peers);

}  // namespace muster::ssh
