// Sends requests to the API server.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "k8s/config.h"
#include "k8s/credentials.h"
#include "k8s/rate_limit.h"
#include "k8s/request.h"
#include "net/http_client.h"

namespace muster::k8s {

struct ClientOptions {
  double requests_per_second = 50;  // not positive: no limit
  int burst = 100;
  std::string field_manager = "muster";  // owner of the fields that Apply() sets
  // Receives warnings of the server (deprecated kinds, unknown fields). Called on any thread.
  std::function<void(const std::string&)> on_warning;
  absl::Duration plugin_timeout = Credentials::kPluginTimeout;
  net::HttpOptions http;
};

// Applies the rate limit, authenticates (again after a 401), and retries requests where that is
// safe: those that are not idempotent only if the server has not executed them. Thread-safe.
class Transport {
 public:
  Transport(ClusterConfig config, ClientOptions options, std::unique_ptr<net::HttpClient> http);

  // Returns a 2xx response, or ErrorOf() another one. Without a response it returns Unavailable,
  // FailedPrecondition if the server's certificate is not trusted, or Unauthenticated. Messages
  // contain no secrets.
  absl::StatusOr<net::Response> Send(const ApiRequest& request);
  // The same for any path.
  absl::StatusOr<net::Response> SendTo(const std::string& path, const ApiRequest& request);

  const ClusterConfig& config() const { return config_; }
  const ClientOptions& options() const { return options_; }

 private:
  absl::StatusOr<net::Response> SendOnce(const std::string& path, const ApiRequest& request,
                                         const Credential& credential, absl::Duration timeout);
  void Warn(const net::Response& response) const;
  absl::Status AddAdvice(const ApiRequest& request, const absl::Status& status) const;
  absl::Status ResponseError(const ApiRequest& request, const net::Response& response) const;

  const ClusterConfig config_;
  const ClientOptions options_;
  const std::unique_ptr<net::HttpClient> http_;
  Credentials credentials_;
  RateLimit limit_;
};

}  // namespace muster::k8s
