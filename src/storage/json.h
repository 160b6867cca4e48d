// The JSON that servers answer with and files hold.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace muster::storage {

// Not an object, for one, when the text is no JSON.
inline nlohmann::json ParseJson(absl::string_view text) {
  return nlohmann::json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

// A member that is a text; "" when there is none.
inline std::string TextMember(const nlohmann::json& json, const char* name) {
  if (!json.is_object()) return "";
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace muster::storage
