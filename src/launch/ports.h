// Ports of this machine, kept for one job so that two jobs started at once never get the same.
#pragma once

#include <map>
#include <set>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace muster {

// A reservation is a Unix socket bound to an abstract name that stands for the port: the kernel
// lets one process have it, whoever the user is, within the same network namespace as the port
// itself, and lets go of it when the process ends in whatever way. Ports are picked below the range
// from which the kernel serves outgoing connections, and only when nobody listens there now. A
// program that is not Muster may still take one before the task does; see Lifecycle::MovePort. Not
// thread-safe.
class PortReservations {
 public:
  // Those that Reserve() picks from.
  static constexpr int kFirstPort = 20000;
  static constexpr int kLastPort = 32767;  // Linux serves outgoing connections from 32768 up

  // ResourceExhausted when no port is free, or this process is out of descriptors.
  absl::StatusOr<int> Reserve();
  // A port that the user chose. AlreadyExists when it is reserved or in use, PermissionDenied when
  // this user may not listen there; ResourceExhausted as above.
  absl::Status ReserveExactly(int port);
  void Release(int port) { held_.erase(port); }

 private:
  std::map<int, UniqueFd> held_;
};

// True when some process has this TCP port, or had it a moment ago, so that a program cannot bind
// it.
bool IsPortInUse(int port);
// Every TCP port that some process listens on, by the kernel's tables: no connection is made.
std::set<int> ListeningPorts();

}  // namespace muster
