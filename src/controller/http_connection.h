// One client of HttpServer.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "base/unique_fd.h"
#include "controller/http_server.h"

namespace muster::controller {

//   handshake ──> reading ──────────> writing
//                    ^   a request       │
//                    └───────────────────┘ sent, and the client keeps the connection
class HttpConnection {
 public:
  HttpConnection(UniqueFd fd, const HttpServerOptions& options, absl::Time now);

  int fd() const { return fd_.get(); }
  short wants() const { return wants_; }  // POLLIN or POLLOUT
  absl::Time deadline() const { return deadline_; }
  // Since when it has been waited for; connections between requests come first.
  std::pair<bool, absl::Time> rank() const { return {!idle(), since_}; }
  size_t buffered() const { return in_.size(); }

  // Whether bytes of the next request were read with the last one: poll() does not tell.
  bool has_more() const { return has_more_; }

  // Goes on as far as it can without waiting, for one request at most. False: it is over.
  bool Advance(absl::Time now);

 private:
  enum class State { kHandshake, kReading, kWriting };
  enum class Io { kDone, kWait, kClosed };

  bool idle() const { return state_ == State::kReading && in_.empty() && served_; }
  Io Shake();
  Io Read();
  Io Write();
  // What a call of OpenSSL that returned `result` asks for.
  Io Wait(int result);
  // Answers the first request that is there whole. False: there is none yet.
  bool Serve();
  void Respond(const HttpResponse& response, bool keep, bool head_only = false);
  void BeginRequest(absl::Time now, absl::Duration time);

  struct SslFree {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  const HttpServerOptions& options_;
  UniqueFd fd_;
  std::unique_ptr<SSL, SslFree> ssl_;  // null: without TLS
  State state_;
  short wants_;
  absl::Time since_;
  absl::Time deadline_;
  std::string in_;
  std::string out_;
  size_t sent_ = 0;
  bool keep_ = false;
  bool served_ = false;  // a request, before
  bool has_more_ = false;
  bool continued_ = false;  // "100 Continue" was sent for the request that is being read
};

}  // namespace muster::controller
