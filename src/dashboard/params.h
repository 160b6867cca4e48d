// Reads the parameters of a request.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "dashboard/http.h"

namespace muster::dashboard {

// Returns the value of a parameter, or "" if it is absent.
std::string Text(const Request& request, const std::string& name);
std::vector<std::string> Texts(const Request& request, const std::string& name);

// A whole number with its limits.
struct IntegerParam {
  std::string name;
  int64_t fallback = 0;  // if it is absent
  int64_t min = 0;
  int64_t max = 0;
};
// Returns InvalidArgument if the value is not a number within the limits.
absl::StatusOr<int64_t> Integer(const Request& request, const IntegerParam& param);
absl::StatusOr<bool> Boolean(const Request& request, const std::string& name);

// Returns InvalidArgument unless the body is a JSON object that has no members but `known`.
absl::StatusOr<nlohmann::json> ObjectBody(const Request& request,
                                          const std::vector<std::string>& known);

}  // namespace muster::dashboard
