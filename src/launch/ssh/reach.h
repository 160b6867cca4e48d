// Whether hosts reach each other: one listens, the others connect.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"
#include "launch/ports.h"

namespace muster::ssh {

// Ports that others may try to reach, until this is destroyed. Nobody is talked to.
class Listener {
 public:
  // On one such as tasks are given, and those of `fixed` that nobody has.
  static absl::StatusOr<Listener> Open(const std::vector<int>& fixed);

  const std::vector<int>& ports() const { return ports_; }  // the picked one first

 private:
  Listener() = default;
  absl::Status Add(int port);

  PortReservations reservations_;
  std::vector<UniqueFd> sockets_;
  std::vector<int> ports_;
};

// Of each address: "" when something listens there, else why it cannot be reached. All are tried at
// once.
std::vector<std::string> TryToReach(const std::vector<std::string>& addresses,
                                    absl::Duration timeout);

}  // namespace muster::ssh
