// Checks that hosts reach each other: one listens, the others connect.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/files/unique_fd.h"
#include "supervise/ports.h"

namespace muster::ssh {

// Listens on ports until destroyed. Never accepts a connection.
class Listener {
 public:
  // Listens on one port of the kind that tasks are given, and on those of `fixed` that are free.
  static absl::StatusOr<Listener> Open(const std::vector<int>& fixed);

  // Returns the ports listened on, the picked one first.
  const std::vector<int>& ports() const { return ports_; }

 private:
  Listener() = default;
  absl::Status Add(int port);

  supervise::PortReservations reservations_;
  std::vector<base::UniqueFd> sockets_;
  std::vector<int> ports_;
};

// Connects to all addresses in parallel. Returns for each "" on success, else the reason for the
// failure.
std::vector<std::string> TryToReach(const std::vector<std::string>& addresses,
                                    absl::Duration timeout);

}  // namespace muster::ssh
