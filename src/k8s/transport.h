// Carries requests to a cluster's API server.
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
  std::string field_manager = "muster";  // whose the fields are that Apply() sets
  // What the server warns of (deprecated kinds, unknown fields); called in any thread.
  std::function<void(const std::string&)> on_warning;
  absl::Duration plugin_timeout = Credentials::kPluginTimeout;
  net::HttpOptions http;
};

// Thread-safe. It keeps to the rate limit, signs in (again, when the server answers 401), and
// repeats what was lost where that is safe: what cannot be done twice only when the server did not
// carry it out.
class Transport {
 public:
  Transport(ClusterConfig config, ClientOptions options, std::unique_ptr<net::HttpClient> http);

  // The answer, 2xx; else ErrorOf() it, or why there is none: Unavailable, FailedPrecondition when
  // the server's certificate is not to be trusted, Unauthenticated. No message holds a secret.
  absl::StatusOr<net::Response> Send(const ApiRequest& request);
  // The same of any path.
  absl::StatusOr<net::Response> SendTo(const std::string& path, const ApiRequest& request);

  const ClusterConfig& config() const { return config_; }
  const ClientOptions& options() const { return options_; }

 private:
  absl::StatusOr<net::Response> Try(const std::string& path, const ApiRequest& request,
                                    const Credential& credential, absl::Duration patience);
  void Warn(const net::Response& response) const;
  absl::Status Explain(const ApiRequest& request, const absl::Status& status) const;
  absl::Status Refused(const ApiRequest& request, const net::Response& response) const;

  const ClusterConfig config_;
  const ClientOptions options_;
  const std::unique_ptr<net::HttpClient> http_;
  Credentials credentials_;
  RateLimit limit_;
};

}  // namespace muster::k8s
