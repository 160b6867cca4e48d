// Services of this very machine that hand out credentials: metadata servers, agents.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "net/http_client.h"

namespace muster::storage {

// They answer at once or are not there. Thread-safe.
class LocalService {
 public:
  // A successful answer.
  absl::StatusOr<net::Response> Ask(const std::string& method, const std::string& url,
                                    const net::Headers& headers);

 private:
  absl::Mutex mutex_;
  std::unique_ptr<net::HttpClient> client_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::storage
