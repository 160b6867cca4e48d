// One try of one request.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "net/curl.h"
#include "net/http.h"
#include "net/http_client.h"

namespace muster::net {

struct TryResult {
  enum class Kind {
    kAnswered,  // `response` holds it
    kLost,      // the connection failed or fell silent; `status` says how
    kFailed,    // `status` says why; to try again would be no use
  };
  Kind kind = Kind::kFailed;
  Response response;
  absl::Status status;
};

// Sends `request` with `handle`, which keeps its connection for the next one.
TryResult TryOnce(const Curl& curl, CURL* handle, const HttpOptions& options,
                  const Request& request);

}  // namespace muster::net
