// Services on the local link that issue credentials: metadata servers, container agents.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "net/http_client.h"

namespace muster::storage {

// Uses short timeouts: such a service responds immediately or does not exist. Thread-safe.
class LocalService {
 public:
  // Returns a response with status 2xx, or the error.
  absl::StatusOr<net::Response> Send(const std::string& method, const std::string& url,
                                     const net::Headers& headers);

 private:
  absl::Mutex mutex_;
  std::unique_ptr<net::HttpClient> client_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::storage
