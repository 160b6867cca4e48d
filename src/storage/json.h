// The JSON that servers answer with and files hold.
#pragma once

#include <string>

#include "base/json.h"

namespace muster::storage {

// A member that is a text; "" when there is none.
inline std::string TextMember(const nlohmann::json& json, const char* name) {
  if (!json.is_object()) return "";
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace muster::storage
