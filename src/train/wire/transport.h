// How messages travel. The parameter server and its clients know nothing below this: gRPC today;
// shared memory or RDMA would be further implementations.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "train/wire/message.h"

namespace muster::train::wire {

// An ordered, reliable stream of messages both ways. One thread may send while another receives;
// Cancel may be called from any.
class Connection {
 public:
  virtual ~Connection() = default;

  // Hands a message over; waits while the peer does not take any. False when the stream has ended.
  virtual bool Send(Outgoing message) = 0;
  // The next message. An error when the stream has ended (Unavailable, Cancelled) or the peer does
  // not speak this protocol (InvalidArgument).
  virtual absl::StatusOr<Incoming> Receive() = 0;
  // Ends the stream at once: calls that wait return.
  virtual void Cancel() = 0;
};

// Serves until it is destroyed; then every stream is cancelled and its handler waited for.
class Listener {
 public:
  virtual ~Listener() = default;
};

class Transport {
 public:
  virtual ~Transport() = default;

  // Waits until the address answers: Unavailable after `timeout`.
  virtual absl::StatusOr<std::unique_ptr<Connection>> Connect(const std::string& address,
                                                              absl::Duration timeout) = 0;
  // `serve` is called in a thread of its own for each stream, which ends when it returns.
  virtual absl::StatusOr<std::unique_ptr<Listener>> Listen(
      const std::string& address, std::function<void(Connection&)> serve) = 0;
};

}  // namespace muster::train::wire
