#include "storage/local_service.h"

#include <utility>

#include "base/status_macros.h"

namespace muster::storage {

absl::StatusOr<net::Response> LocalService::Send(const std::string& method, const std::string& url,
                                                 const net::Headers& headers) {
  // One request at a time: the callers wait for the same credentials.
  absl::MutexLock lock(&mutex_);
  if (client_ == nullptr) {
    net::HttpOptions options = net::HttpOptions::FromEnvironment();
    options.connect_timeout = absl::Seconds(1);
    options.retry = {.tries = 3, .total_timeout = absl::Seconds(3)};
    MUSTER_ASSIGN_OR_RETURN(client_, net::HttpClient::Create(std::move(options)));
  }
  MUSTER_ASSIGN_OR_RETURN(net::Response response, client_->Do({.method = method,
                                                               .url = url,
                                                               .headers = headers,
                                                               .max_response_bytes = 1 << 20,
                                                               .timeout = absl::Seconds(2)}));
  MUSTER_RETURN_IF_ERROR(net::StatusOf(response));
  return response;
}

}  // namespace muster::storage
