// What a refusal of Google's services means, and what to do about it. Pure.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "net/http.h"

namespace muster::vertex {

inline constexpr char kVertexService[] = "Vertex AI";
inline constexpr char kLoggingService[] = "Cloud Logging";

// What was tried.
struct Attempt {
  std::string service = kVertexService;
  std::string project = {};
  std::string region = {};
  std::string permission = {};                  // that it takes
  std::string job = {};                         // the number of the CustomJob that it was about
  std::string member = "serviceAccount:EMAIL";  // who tried
};

// For an answer other than 2xx; the codes are those that Client promises.
absl::Status ErrorOf(const Attempt& attempt, const net::Response& response);

}  // namespace muster::vertex
