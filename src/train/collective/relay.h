// TCP connections between the tasks of an all-reduce, carried by streams of the transport: Gloo has
// no TLS, so it speaks on the loopback interface alone and the relay takes its bytes to the others.
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
#include "base/unique_fd.h"
#include "train/wire/transport.h"

namespace muster::train {

// Loopback address of a rank's end of the connections, the same on every machine. Addresses
// increase with the rank: Gloo lets the greater one connect.
in_addr LoopbackOf(int rank);

// Thread-safe. Connections end with it.
class Relay {
 public:
  struct Options {
    int rank = 0;
    std::vector<std::string> addresses;  // where the tasks listen, by rank
    wire::Frame hello;                   // introduces this task
    std::function<void(const std::string&)> log;
  };
  static absl::StatusOr<std::unique_ptr<Relay>> Create(wire::Transport& transport, Options options);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // Lets the other tasks connect to this port of LoopbackOf(own rank), and to no other.
  void Expose(int port);
  // A port of LoopbackOf(rank) on this machine that leads to that task's `port`, for one
  // connection.
  absl::StatusOr<int> Forward(int rank, int port);

  // Another task's stream to an exposed port, until it ends. For a listener's handler.
  void Serve(wire::Connection& connection, const wire::Frame& hello);

  // Waits until every connection has been acknowledged by its peer, at most `timeout`. Close them
  // first.
  void Drain(absl::Duration timeout);

 private:
  Relay(wire::Transport& transport, Options options, EventFd stop);
  void RunForwarder(const UniqueFd& listener, int rank, int port);
  bool stopping();
  // Of this task's own connection to `rank`, or of another task's.
  void Carry(const UniqueFd& socket, wire::Connection& stream,
             std::optional<int> rank = std::nullopt);
  void LogFailure(int rank, const absl::Status& status);
  bool NothingUndelivered() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return undelivered_ == 0;
  }

  wire::Transport& transport_;
  const Options options_;
  const EventFd stop_;
  absl::Mutex mutex_;
  std::set<int> exposed_ ABSL_GUARDED_BY(mutex_);
  std::set<wire::Connection*> streams_ ABSL_GUARDED_BY(mutex_);
  int undelivered_ ABSL_GUARDED_BY(mutex_) = 0;  // connections whose bytes may be on their way
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::jthread> forwarders_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::train
