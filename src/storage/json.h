// Reading JSON from servers and credential files.
#pragma once

#include <string>

#include "base/json.h"

namespace muster::storage {

// Returns the string member `name`; "" if there is none.
inline std::string TextMember(const nlohmann::json& json, const char* name) {
  if (!json.is_object()) return "";
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace muster::storage
