// One connection of HttpServer.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "base/files/unique_fd.h"
#include "controller/server/http_server.h"

namespace muster::controller {

//   handshake ──> reading ──────────> writing
//                    ^   a request       │
//                    └───────────────────┘ sent, and the connection is kept alive
//
// Not thread-safe: used by the server's thread only.
class HttpConnection {
 public:
  HttpConnection(base::UniqueFd fd, const HttpServerOptions& options, absl::Time now);

  int fd() const { return fd_.get(); }
  short wants() const { return wants_; }  // POLLIN or POLLOUT
  absl::Time deadline() const { return deadline_; }
  // Sorts connections by which to close first: idle ones, then those waiting for longest.
  std::pair<bool, absl::Time> rank() const { return {!idle(), since_}; }
  size_t buffered() const { return in_.size(); }

  // Returns whether bytes of the next request were read with the last one. poll() does not report
  // them.
  bool has_more() const { return has_more_; }

  // Proceeds as far as possible without blocking, for one request at most. Returns false if the
  // connection is to be closed.
  bool Advance(absl::Time now);

 private:
  enum class State { kHandshake, kReading, kWriting };
  enum class Io { kDone, kWait, kClosed };

  bool idle() const { return state_ == State::kReading && in_.empty() && served_; }
  Io Handshake();
  Io Read();
  Io Write();
  // Translates the result of an OpenSSL call, and sets wants_.
  Io Wait(int result);
  // Handles the first request in the buffer. Returns false if none is complete.
  bool Serve();
  void Respond(const HttpResponse& response, bool keep, bool head_only = false);
  void BeginRequest(absl::Time now, absl::Duration time);

  struct SslFree {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  const HttpServerOptions& options_;
  base::UniqueFd fd_;
  std::unique_ptr<SSL, SslFree> ssl_;  // null: plain HTTP
  State state_;
  short wants_;
  absl::Time since_;
  absl::Time deadline_;
  std::string in_;
  std::string out_;
  size_t sent_ = 0;
  bool keep_ = false;
  bool served_ = false;  // at least one request
  bool has_more_ = false;
  bool continued_ = false;  // sent "100 Continue" for the current request
};

}  // namespace muster::controller
