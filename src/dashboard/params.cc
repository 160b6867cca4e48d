#include "dashboard/params.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/text/json.h"

namespace muster::dashboard {

std::string Text(const Request& request, const std::string& name) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? "" : found->second;
}

std::vector<std::string> Texts(const Request& request, const std::string& name) {
  std::vector<std::string> values;
  const auto [begin, end] = request.query.equal_range(name);
  for (auto it = begin; it != end; ++it) values.push_back(it->second);
  return values;
}

absl::StatusOr<int64_t> Integer(const Request& request, const IntegerParam& param) {
  const auto found = request.query.find(param.name);
  if (found == request.query.end()) return param.fallback;
  int64_t value = 0;
  if (absl::SimpleAtoi(found->second, &value) && value >= param.min && value <= param.max) {
    return value;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(param.name, " must be a whole number from ", param.min, " to ", param.max));
}

absl::StatusOr<bool> Boolean(const Request& request, const std::string& name) {
  const std::string text = Text(request, name);
  if (text.empty() || text == "false") return false;
  if (text == "true") return true;
  return absl::InvalidArgumentError(absl::StrCat(name, " must be true or false"));
}

absl::StatusOr<nlohmann::json> ObjectBody(const Request& request,
                                          const std::vector<std::string>& known) {
  nlohmann::json body = base::ParseJson(request.body);
  if (!body.is_object()) return absl::InvalidArgumentError("the body must be a JSON object");
  for (const auto& [name, value] : body.items()) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return absl::InvalidArgumentError(absl::StrCat("unknown member \"", name, "\""));
    }
  }
  return body;
}

}  // namespace muster::dashboard
