// One try of one request.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "net/curl.h"
#include "net/http.h"
#include "net/http_client.h"

namespace muster::net {

// A transfer, and what drives it and keeps its connection for the next one.
struct Handle {
  CURL* easy = nullptr;
  CURLM* multi = nullptr;
};

struct TryResult {
  enum class Kind {
    kAnswered,  // `response` holds it
    kLost,      // the connection failed or fell silent; `status` says how
    kFailed,    // `status` says why; to try again would be no use
  };
  Kind kind = Kind::kFailed;
  Response response;
  absl::Status status;
  bool sent = false;  // there was a connection that the request went, or may have gone, out on
};

// Sends `request` with `handle`, for at most `timeout`.
TryResult TryOnce(const Curl& curl, const Handle& handle, const HttpOptions& options,
                  const Request& request, absl::Duration timeout);

}  // namespace muster::net
