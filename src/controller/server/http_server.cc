#include "controller/server/http_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <list>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/event_fd.h"
#include "base/files/unique_fd.h"
#include "base/status_macros.h"
#include "controller/server/http_connection.h"

namespace muster::controller {
namespace {

// Limit of the bytes of incomplete requests of all connections.
constexpr size_t kMaxBuffered = size_t{32} << 20;
constexpr absl::Duration kFdRetryDelay = absl::Milliseconds(100);

absl::StatusOr<base::UniqueFd> Listen(int port) {
  base::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int yes = 1;
  sockaddr_in address = {.sin_family = AF_INET,
                         .sin_port = htons(static_cast<uint16_t>(port)),
                         .sin_addr = {.s_addr = htonl(INADDR_ANY)},
                         .sin_zero = {}};
  if (!fd.valid() || ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
      ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(fd.get(), SOMAXCONN) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot listen on port ", port, "; is it in use?"));
  }
  return fd;
}

}  // namespace

class HttpServer::Loop {
 public:
  Loop(HttpServerOptions options, base::UniqueFd listener, base::EventFd wake)
      : options_(std::move(options)), listener_(std::move(listener)), wake_(std::move(wake)) {
    thread_ = std::jthread([this] { Run(); });
  }
  ~Loop() { wake_.Signal(); }

  int port() const {
    sockaddr_in address = {};
    socklen_t size = sizeof(address);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    return ntohs(address.sin_port);
  }

 private:
  void Run() {
    // OpenSSL writes without MSG_NOSIGNAL to connections that the client may have closed.
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    while (Wait()) {
      const absl::Time now = base::Clock::Real().Now();
      size_t i = 2;  // polled_ has the connections in this order after wake_ and listener_
      for (auto it = connections_.begin(); it != connections_.end(); ++i) {
        const bool ready = polled_[i].revents != 0 || it->has_more();
        const bool stays = it->deadline() > now && (!ready || it->Advance(now));
        it = stays ? std::next(it) : connections_.erase(it);
      }
      if (polled_[1].revents != 0) Accept(now);
      Shed();
    }
    connections_.clear();
  }

  // Blocks until a descriptor is ready or a deadline passes. Returns false if the server is to
  // stop.
  bool Wait() {
    polled_ = {{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    const absl::Time now = base::Clock::Real().Now();
    absl::Time next = now + absl::Minutes(1);
    for (const HttpConnection& connection : connections_) {
      polled_.push_back({connection.fd(), connection.wants(), 0});
      next = std::min(next, connection.has_more() ? now : connection.deadline());
    }
    const int64_t timeout =
        next <= now ? 0 : absl::ToInt64Milliseconds(absl::Ceil(next - now, absl::Milliseconds(1)));
    if (::poll(polled_.data(), polled_.size(), static_cast<int>(timeout)) < 0) {
      for (pollfd& one : polled_) one.revents = 0;  // EINTR: nothing is ready
    }
    return polled_[0].revents == 0;
  }

  void Accept(absl::Time now) {
    for (;;) {
      base::UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd.valid()) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) Recover();
        return;
      }
      const int yes = 1;
      ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
      connections_.emplace_back(std::move(fd), options_, now);
      if (connections_.size() > options_.max_connections) DropOldest();
    }
  }

  // Out of file descriptors: closes the oldest connection, or waits for others to be released.
  void Recover() {
    if (connections_.empty()) {
      absl::SleepFor(kFdRetryDelay);
    } else {
      DropOldest();
    }
  }

  void DropOldest() {
    connections_.erase(std::min_element(
        connections_.begin(), connections_.end(),
        [](const HttpConnection& a, const HttpConnection& b) { return a.rank() < b.rank(); }));
  }

  // Closes connections until the buffered bytes are within the limit.
  void Shed() {
    for (;;) {
      size_t buffered = 0;
      for (const HttpConnection& connection : connections_) buffered += connection.buffered();
      if (buffered <= kMaxBuffered) return;
      DropOldest();
    }
  }

  const HttpServerOptions options_;
  const base::UniqueFd listener_;
  base::EventFd wake_;
  std::vector<pollfd> polled_;  // wake_, listener_, connections_
  std::list<HttpConnection> connections_;
  std::jthread thread_;
};

HttpServer::HttpServer(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
HttpServer::~HttpServer() = default;
int HttpServer::port() const { return loop_->port(); }

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(HttpServerOptions options) {
  MUSTER_ASSIGN_OR_RETURN(base::UniqueFd listener, Listen(options.port));
  MUSTER_ASSIGN_OR_RETURN(base::EventFd wake, base::EventFd::Create());
  return std::unique_ptr<HttpServer>(new HttpServer(
      std::make_unique<Loop>(std::move(options), std::move(listener), std::move(wake))));
}

}  // namespace muster::controller
