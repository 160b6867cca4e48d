// Sends requests: over connections that are kept, with time-outs, again when that helps.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "net/http.h"

namespace muster::net {

// Tried again: answers that MayPass() and lost connections. Before try n + 1 it waits a
// random time between 0 and first_delay * 2^(n-1), at most max_delay, and at least what the server
// asks for.
struct RetryPolicy {
  int tries = 6;
  absl::Duration first_delay = absl::Milliseconds(200);
  absl::Duration max_delay = absl::Seconds(20);
  absl::Duration patience = absl::Minutes(3);  // no try begins later
};

struct HttpOptions {
  absl::Duration connect_timeout = absl::Seconds(5);
  absl::Duration stall_timeout = absl::Seconds(30);  // silence; whole seconds
  RetryPolicy retry;
  std::string ca_file;    // "": the system's
  std::string ca_folder;  // "": the system's
  std::string proxy;      // a URL; "": as the environment says
  const Clock* clock = &Clock::Real();
  std::function<void(absl::Duration)> sleep;  // empty: really

  // With the authorities that CURL_CA_BUNDLE, SSL_CERT_FILE and SSL_CERT_DIR name. (Proxies are
  // taken from http_proxy, https_proxy, all_proxy and no_proxy by every client.)
  static HttpOptions FromEnvironment();
};

// Thread-safe. One client serves many threads; each request has a connection of its own while it
// lasts, and finds those of earlier requests to the same server open.
class HttpClient {
 public:
  // FailedPrecondition when libcurl is not installed.
  static absl::StatusOr<std::unique_ptr<HttpClient>> Create(HttpOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // The answer, whatever its HTTP status, once it is one that trying again would not change or the
  // policy has come to its end. Unavailable when there was none: connections failed, were cut or
  // fell silent. Messages hold neither the URL nor a header: they may be secret.
  absl::StatusOr<Response> Do(const Request& request);
  // For who repeats in a way of his own what Do() must not (Request::repeatable): waits as before
  // try number `tries` + 1. False when the policy has no more of them.
  bool WaitAfter(int tries, const Response& response);

 private:
  class Handles;
  explicit HttpClient(HttpOptions options, std::unique_ptr<Handles> handles);
  // nullopt: it is not worth another try.
  std::optional<absl::Duration> DelayAfter(int tries, const Response& response);
  // False when the user wants to stop.
  bool Wait(absl::Duration delay, const Request& request) const;

  const HttpOptions options_;
  const std::unique_ptr<Handles> handles_;
  absl::Mutex mutex_;
  std::mt19937_64 random_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::net
