// The transport interface: the parameter server and its clients use nothing below it. gRPC is the
// implementation; shared memory or RDMA could be others.
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

// An ordered, reliable, bidirectional stream of messages. One thread may send while another
// receives; Cancel() may be called from any thread.
class Connection {
 public:
  virtual ~Connection() = default;

  // Sends a message; blocks while the peer receives none. Returns false if the stream has ended.
  virtual bool Send(Outgoing message) = 0;
  // Returns the next message; Unavailable or Cancelled if the stream has ended; InvalidArgument if
  // the peer does not follow the protocol.
  virtual absl::StatusOr<Incoming> Receive() = 0;
  // Ends the stream immediately: blocked calls return.
  virtual void Cancel() = 0;
};

// Serves until destroyed. The destructor cancels every stream and waits for the handlers.
class Listener {
 public:
  virtual ~Listener() = default;
};

// The client of a stream, as a server sees it.
struct Caller {
  Frame hello;          // the client's claim; only TLS proves that it belongs to the job
  std::string address;  // for logs
};

// Called on a thread of its own for each stream, which ends when the handler returns. Before the
// first Receive() only the hello is read from the network, so rejecting a caller is cheap.
using StreamHandler = std::function<void(Connection&, const Caller&)>;

// The timeout of one Connect() in a retry loop. A TLS handshake over a long distance takes a
// second, and a Connect() that times out discards the handshake in progress.
inline constexpr absl::Duration kConnectAttemptTimeout = absl::Seconds(5);

class Transport {
 public:
  virtual ~Transport() = default;

  // Opens a stream with `hello`, of at most kMaxHelloBytes. Waits until the address answers;
  // returns Unavailable after `timeout`, or FailedPrecondition if the address requires
  // certificates.
  virtual absl::StatusOr<std::unique_ptr<Connection>> Connect(const std::string& address,
                                                              const Frame& hello,
                                                              absl::Duration timeout) = 0;
  // Returns FailedPrecondition if the address requires certificates.
  virtual absl::StatusOr<std::unique_ptr<Listener>> Listen(const std::string& address,
                                                           StreamHandler serve) = 0;
};

inline constexpr size_t kMaxHelloBytes = 4 << 10;

}  // namespace muster::train::wire
