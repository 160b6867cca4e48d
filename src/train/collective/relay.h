// Relays the TCP connections of an all-reduce through streams of the transport. Gloo has no TLS, so
// it only uses the loopback interface, and the relay forwards its bytes to the other tasks.
//
//   task 1                                              task 0
//   Gloo ── forwarder ═══ stream, by TLS ═══ listener ── Gloo
//      loopback                                   loopback
#pragma once

#include <netinet/in.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/event_fd.h"
#include "base/files/unique_fd.h"
#include "train/wire/transport.h"

namespace muster::train {

// Returns the loopback address of a rank, the same on every machine. Addresses increase with the
// rank: in Gloo the side with the greater address connects.
in_addr LoopbackOf(int rank);

// Thread-safe. The destructor closes all connections.
class Relay {
 public:
  struct Options {
    int rank = 0;
    std::vector<std::string> addresses;  // where the tasks listen, by rank
    wire::Frame hello;                   // identifies this task
    std::function<void(const std::string&)> log;
  };
  static absl::StatusOr<std::unique_ptr<Relay>> Create(wire::Transport& transport, Options options);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // Lets the other tasks connect to this port of LoopbackOf(own rank), and to no other.
  void Expose(int port);
  // Returns a port of LoopbackOf(rank) on this machine that forwards one connection to that task's
  // `port`.
  absl::StatusOr<int> Forward(int rank, int port);

  // Serves another task's stream to an exposed port until it ends. For a StreamHandler.
  void Serve(wire::Connection& connection, const wire::Frame& hello);

  // Waits up to `timeout` until the peers have acknowledged all bytes. REQUIRES: Gloo has closed
  // its connections.
  void Drain(absl::Duration timeout);

 private:
  Relay(wire::Transport& transport, Options options, base::EventFd stop);
  void RunForwarder(const base::UniqueFd& listener, int rank, int port);
  bool stopping();
  // Forwards bytes both ways until both directions have ended. `rank`: the peer, if this task
  // opened the stream.
  void Pump(const base::UniqueFd& socket, wire::Connection& stream,
            std::optional<int> rank = std::nullopt);
  void LogFailure(int rank, const absl::Status& status);
  bool NothingUndelivered() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return undelivered_ == 0;
  }

  wire::Transport& transport_;
  const Options options_;
  const base::EventFd stop_;
  absl::Mutex mutex_;
  std::set<int> exposed_ ABSL_GUARDED_BY(mutex_);
  std::set<wire::Connection*> streams_ ABSL_GUARDED_BY(mutex_);
  int undelivered_ ABSL_GUARDED_BY(mutex_) = 0;  // connections whose bytes are not acknowledged yet
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::jthread> forwarders_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::train
