// HTTP requests and responses, independent of the library that serves them.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace muster::dashboard {

struct Request {
  std::string method;  // "GET"
  std::string path;    // without the query, decoded
  std::multimap<std::string, std::string> query;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;

  // Returns the header, or "" if it is absent.
  std::string Header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

struct Response {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

// Returns an answer with the JSON. Bytes that are not UTF-8 are replaced.
Response JsonResponse(const nlohmann::json& json);
// Returns {"error": {"code": …, "message": …}} with the HTTP status that corresponds to the code.
Response ErrorResponse(const absl::Status& error);
Response ErrorResponse(int status, absl::string_view code, absl::string_view message);

}  // namespace muster::dashboard
