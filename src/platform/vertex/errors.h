// Maps error responses of Google's services to statuses with a remedy. Pure.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "net/http.h"

namespace muster::vertex {

inline constexpr char kVertexService[] = "Vertex AI";
inline constexpr char kLoggingService[] = "Cloud Logging";

// The failed request.
struct Attempt {
  std::string service = kVertexService;
  std::string project = {};
  std::string region = {};
  std::string permission = {};                  // required
  std::string job = {};                         // number of the CustomJob concerned
  std::string member = "serviceAccount:EMAIL";  // IAM member that sent the request
};

// REQUIRES: the response is not 2xx. The codes are those listed at Client.
absl::Status ErrorOf(const Attempt& attempt, const net::Response& response);

}  // namespace muster::vertex
