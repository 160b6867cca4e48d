// One attempt of a request.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "net/curl.h"
#include "net/http.h"
#include "net/http_client.h"

namespace muster::net {

// A libcurl transfer, and the multi handle that drives it and keeps its connection for reuse.
struct Handle {
  CURL* easy = nullptr;
  CURLM* multi = nullptr;
};

struct TryResult {
  enum class Kind {
    kAnswered,  // `response` is set
    kLost,      // the connection failed or stalled; `status` is the cause
    kFailed,    // `status` is the cause; a retry would fail too
  };
  Kind kind = Kind::kFailed;
  Response response;
  absl::Status status;
  bool sent = false;  // the request may have reached the server
};

// Sends `request` with `handle`, for at most `timeout`. Resets handle.easy; the connection stays
// open.
TryResult TryOnce(const Curl& curl, const Handle& handle, const HttpOptions& options,
                  const Request& request, absl::Duration timeout);

}  // namespace muster::net
