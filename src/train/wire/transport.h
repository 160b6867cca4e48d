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

// The client of a stream, as a server sees it.
struct Caller {
  Frame hello;          // the client's claim; only TLS proves that it belongs to the job
  std::string address;  // for logs
};

// Called in a thread of its own for each stream, which ends when it returns. Nothing but the hello
// is taken from the network before the first Receive, so a caller can be turned away cheaply.
using StreamHandler = std::function<void(Connection&, const Caller&)>;

// How long callers that try again let one Connect() take: a TLS handshake far away takes a second,
// and a call that gives up throws away the one that is under way.
inline constexpr absl::Duration kConnectTurn = absl::Seconds(5);

class Transport {
 public:
  virtual ~Transport() = default;

  // Opens a stream that introduces itself with `hello`, at most kMaxHelloBytes. Waits until the
  // address answers: Unavailable after `timeout`. FailedPrecondition: the address may only be
  // reached with certificates.
  virtual absl::StatusOr<std::unique_ptr<Connection>> Connect(const std::string& address,
                                                              const Frame& hello,
                                                              absl::Duration timeout) = 0;
  // FailedPrecondition as of Connect.
  virtual absl::StatusOr<std::unique_ptr<Listener>> Listen(const std::string& address,
                                                           StreamHandler serve) = 0;
};

inline constexpr size_t kMaxHelloBytes = 4 << 10;

}  // namespace muster::train::wire
