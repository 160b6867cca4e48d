// Reserves ports of this machine for one job, so that jobs started concurrently do not collide.
#pragma once

#include <map>
#include <set>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"

namespace muster::supervise {

// A reservation is a Unix socket bound to an abstract name derived from the port. The kernel grants
// the name to one process, of any user, in the network namespace of the port itself, and
// releases it when that process exits. Reserve() picks ports below the kernel's ephemeral range on
// which no process listens. A program other than Muster may still bind a reserved port before the
// task does; see Lifecycle::MovePort. Not thread-safe.
class PortReservations {
 public:
  // The range from which Reserve() picks.
  static constexpr int kFirstPort = 20000;
  static constexpr int kLastPort = 32767;  // Linux's ephemeral range starts at 32768

  // Returns a port reserved for this process, or ResourceExhausted if no port is free or this
  // process is out of file descriptors.
  absl::StatusOr<int> Reserve();
  // Reserves a port chosen by the user. Returns AlreadyExists if it is reserved or in use,
  // PermissionDenied if this user may not bind it, or ResourceExhausted as above.
  absl::Status ReserveExactly(int port);
  void Release(int port) { held_.erase(port); }

 private:
  std::map<int, base::UniqueFd> held_;
};

// Returns true if a program cannot bind this TCP port: a process holds it, or connections to it are
// in TIME_WAIT.
bool IsPortInUse(int port);
// Returns every TCP port with a listener, from the kernel's tables. Makes no connection.
std::set<int> ListeningPorts();

}  // namespace muster::supervise
