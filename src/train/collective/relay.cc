// One relayed connection, from the task that connects to the one that listens:
//
//    Gloo ──> port of Forward() ── RunForwarder ══ HELLO (RELAY, port) ══> Serve ──> port of Gloo
//
// Both ends then run Pump(): one thread reads the socket and sends BYTES, the other receives BYTES
// and writes them to the socket. A task may exit right after its last collective, with bytes
// possibly still in the streams; the acknowledged END lets Drain() wait for them.
#include "train/collective/relay.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "train/wire/admission.h"

namespace muster::train {
namespace {

using wire::Frame;

constexpr absl::Duration kConnectTimeout = absl::Seconds(30);
constexpr size_t kReadBytes = 512 << 10;

sockaddr_in SocketAddress(int rank, int port) {
  return {.sin_family = AF_INET,
          .sin_port = ::htons(static_cast<uint16_t>(port)),
          .sin_addr = LoopbackOf(rank),
          .sin_zero = {}};
}

// Disables Nagle's algorithm: Gloo exchanges small messages.
void DisableNagle(const base::UniqueFd& socket) {
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

absl::StatusOr<base::UniqueFd> ListenAt(int rank, int& port) {
  base::UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in bound = SocketAddress(rank, 0);
  socklen_t size = sizeof(bound);
  auto* address = reinterpret_cast<sockaddr*>(&bound);
  if (!listener.valid() || ::bind(listener.get(), address, size) != 0 ||
      ::listen(listener.get(), 1) != 0 || ::getsockname(listener.get(), address, &size) != 0) {
    return absl::ErrnoToStatus(errno, "a local port for all-reduce");
  }
  port = ::ntohs(bound.sin_port);
  return listener;
}

absl::StatusOr<base::UniqueFd> ConnectTo(int rank, int port) {
  base::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = SocketAddress(rank, port);
  if (!socket.valid() ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return absl::ErrnoToStatus(errno, "the local end of all-reduce");
  }
  return socket;
}

void WriteAll(const base::UniqueFd& socket, const wire::Payload& payload) {
  for (const wire::Chunk& piece : payload.pieces()) {
    const auto* at = static_cast<const char*>(piece.data);
    size_t left = piece.size;
    while (left > 0) {
      const ssize_t written = ::send(socket.get(), at, left, MSG_NOSIGNAL);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return;
      at += written;
      left -= static_cast<size_t>(written);
    }
  }
}

// Serializes the sends of several threads on one stream.
class SharedSender {
 public:
  explicit SharedSender(wire::Connection& stream) : stream_(stream) {}
  bool Send(Frame::Kind kind, std::vector<wire::Chunk> payload = {}) {
    wire::Outgoing message;
    message.frame.set_kind(kind);
    message.payload = std::move(payload);
    absl::MutexLock lock(&mutex_);
    return stream_.Send(std::move(message));
  }

 private:
  absl::Mutex mutex_;
  wire::Connection& stream_;
};

// Forwards bytes from the socket until its peer closes it or the stream ends.
void SendBytes(const base::UniqueFd& socket, SharedSender& sender) {
  for (;;) {
    auto buffer = std::make_shared_for_overwrite<char[]>(kReadBytes);
    const ssize_t size = ::recv(socket.get(), buffer.get(), kReadBytes, 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    if (!sender.Send(Frame::BYTES, {{buffer.get(), static_cast<size_t>(size), buffer}})) return;
  }
  sender.Send(Frame::END);
}

}  // namespace

in_addr LoopbackOf(int rank) {
  constexpr int kHosts = 254;  // of 127.77.x.1 to 127.77.x.254
  const auto number = static_cast<uint32_t>((rank / kHosts) << 8 | (rank % kHosts + 1));
  return {::htonl(127U << 24 | 77U << 16 | number)};
}

absl::StatusOr<std::unique_ptr<Relay>> Relay::Create(wire::Transport& transport, Options options) {
  MUSTER_ASSIGN_OR_RETURN(base::EventFd stop, base::EventFd::Create());
  options.hello.set_kind(Frame::HELLO);
  options.hello.set_service(Frame::RELAY);
  return std::unique_ptr<Relay>(new Relay(transport, std::move(options), std::move(stop)));
}

Relay::Relay(wire::Transport& transport, Options options, base::EventFd stop)
    : transport_(transport), options_(std::move(options)), stop_(std::move(stop)) {}

Relay::~Relay() {
  // Joined when the function returns, after the mutex is released: Pump() takes it.
  std::vector<std::jthread> forwarders;
  stop_.Signal();
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    for (wire::Connection* stream : streams_) stream->Cancel();
    forwarders.swap(forwarders_);
  }
}

bool Relay::stopping() {
  absl::MutexLock lock(&mutex_);
  return stopping_;
}

void Relay::Expose(int port) {
  absl::MutexLock lock(&mutex_);
  exposed_.insert(port);
}

absl::StatusOr<int> Relay::Forward(int rank, int port) {
  int local = 0;
  MUSTER_ASSIGN_OR_RETURN(base::UniqueFd listener, ListenAt(rank, local));
  absl::MutexLock lock(&mutex_);
  forwarders_.emplace_back(
      [this, rank, port, listener = std::move(listener)] { RunForwarder(listener, rank, port); });
  return local;
}

void Relay::RunForwarder(const base::UniqueFd& listener, int rank, int port) {
  std::array<pollfd, 2> ready = {{{listener.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
  while (::poll(ready.data(), ready.size(), -1) < 0 && errno == EINTR) {
  }
  if (ready[1].revents != 0) return;
  const base::UniqueFd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket.valid()) return;
  Frame hello = options_.hello;
  hello.set_port(static_cast<uint32_t>(port));
  const absl::Time deadline = base::Clock::Real().Now() + kConnectTimeout;
  const std::string& address = options_.addresses[static_cast<size_t>(rank)];
  absl::StatusOr<std::unique_ptr<wire::Connection>> stream = absl::UnknownError("");
  do {
    stream = transport_.Connect(address, hello, wire::kConnectAttemptTimeout);
  } while (absl::IsUnavailable(stream.status()) && base::Clock::Real().Now() < deadline &&
           !stopping());
  // Log the cause: Gloo only sees that its connection was closed.
  if (!stream.ok() && !stopping()) LogFailure(rank, stream.status());
  if (stream.ok()) Pump(socket, **stream, rank);
}

void Relay::LogFailure(int rank, const absl::Status& status) {
  options_.log(absl::StrCat("cannot connect to rank ", rank, " (",
                            options_.addresses[static_cast<size_t>(rank)],
                            ") for all-reduce: ", status.message()));
}

void Relay::Serve(wire::Connection& connection, const Frame& hello) {
  const int port = static_cast<int>(hello.port());
  bool exposed = false;
  {
    absl::MutexLock lock(&mutex_);
    exposed = exposed_.contains(port);
  }
  if (!exposed) {
    return wire::Refuse(connection,
                        absl::NotFoundError(absl::StrCat("port ", port, " is not exposed")));
  }
  const auto socket = ConnectTo(options_.rank, port);
  if (!socket.ok()) return wire::Refuse(connection, socket.status());
  Pump(*socket, connection);
}

// Each direction ends with END, which the receiver acknowledges with OK. A connection counts as
// undelivered until OK arrives.
void Relay::Pump(const base::UniqueFd& socket, wire::Connection& stream, std::optional<int> rank) {
  {
    absl::MutexLock lock(&mutex_);
    // A stream that is registered after the destructor has cancelled the others would never end.
    if (stopping_) return;
    streams_.insert(&stream);
    ++undelivered_;
  }
  DisableNagle(socket);
  SharedSender sender(stream);
  std::jthread sending([&] { SendBytes(socket, sender); });
  bool delivered = false;
  const auto deliver = [&] {
    absl::MutexLock lock(&mutex_);
    if (!std::exchange(delivered, true)) --undelivered_;
  };
  for (bool ended = false; !ended || !delivered;) {
    const auto message = stream.Receive();
    if (!message.ok()) break;
    const Frame::Kind kind = message->frame.kind();
    if (kind == Frame::BYTES) {
      // Bytes for a socket that Gloo has closed are dropped, as TCP does.
      WriteAll(socket, message->payload);
    } else if (kind == Frame::END) {
      ended = true;
      ::shutdown(socket.get(), SHUT_WR);
      sender.Send(Frame::OK);
    } else if (kind == Frame::OK) {
      deliver();
    } else {
      if (kind == Frame::ERROR && rank) LogFailure(*rank, wire::StatusOf(message->frame));
      break;
    }
  }
  if (!delivered) stream.Cancel();
  ::shutdown(socket.get(), SHUT_RDWR);
  // The socket was shut down, so recv() in the thread returns.
  sending.join();
  deliver();
  absl::MutexLock lock(&mutex_);
  streams_.erase(&stream);
}

void Relay::Drain(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(this, &Relay::NothingUndelivered), timeout);
}

}  // namespace muster::train
