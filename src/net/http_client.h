// An HTTP client with persistent connections, timeouts and retries.
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

// Governs retries after a transient HTTP status (IsRetryableStatus()) or a lost connection. The
// delay after attempt n is random between 0 and min(max_delay, first_delay * 2^(n-1)), and at least
// the server's Retry-After.
struct RetryPolicy {
  int tries = 6;  // attempts in total
  absl::Duration first_delay = absl::Milliseconds(200);
  absl::Duration max_delay = absl::Seconds(20);
  // No attempt starts later than this after the first one. Does not cut a running attempt short.
  absl::Duration total_timeout = absl::Minutes(3);
};

struct HttpOptions {
  absl::Duration connect_timeout = absl::Seconds(5);
  absl::Duration stall_timeout = absl::Seconds(30);  // without data; in whole seconds
  RetryPolicy retry;
  std::string ca_file;    // "": the system's
  std::string ca_folder;  // "": the system's
  std::string proxy;      // a URL; "": from the environment
  const base::Clock* clock = &base::Clock::Real();
  std::function<void(absl::Duration)> sleep;  // empty: absl::SleepFor

  // Returns options with the trust roots named by CURL_CA_BUNDLE, SSL_CERT_FILE and SSL_CERT_DIR.
  // (Every client honours http_proxy, https_proxy, all_proxy and no_proxy.)
  static HttpOptions FromEnvironment();
};

// Thread-safe. Each request uses a connection of its own and then returns it to a pool for later
// requests to the same server.
class HttpClient {
 public:
  // Returns FailedPrecondition if libcurl is missing or too old.
  static absl::StatusOr<std::unique_ptr<HttpClient>> Create(HttpOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Sends `request`, with retries, and returns the last response, whatever its HTTP status. Returns
  // Unavailable if there was none because connections failed, broke or stalled; Cancelled on
  // request. Messages contain neither the URL nor a header, because these may hold secrets.
  absl::StatusOr<Response> Do(const Request& request);
  // For callers with their own retry loop, because Do() must not resend the request
  // (Request::idempotent). Waits as Do() does after `tries` attempts. Returns false if the policy
  // allows no further attempt.
  bool WaitBeforeRetry(int tries, const Response& response);

 private:
  class Handles;
  explicit HttpClient(HttpOptions options, std::unique_ptr<Handles> handles);
  // Returns the delay before the next attempt, or nullopt if the policy allows none.
  std::optional<absl::Duration> DelayAfter(int tries, const Response& response);
  // Returns false if the request is cancelled meanwhile.
  bool Wait(absl::Duration delay, const Request& request) const;

  const HttpOptions options_;
  const std::unique_ptr<Handles> handles_;
  absl::Mutex mutex_;
  std::mt19937_64 random_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::net
