#include "base/json.h"

namespace muster {

bool NestsDeeperThan(absl::string_view text, int depth) {
  int level = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '{' || c == '[')) {
      if (++level > depth) return true;
    } else if (!quoted && (c == '}' || c == ']')) {
      --level;
    }
  }
  return false;
}

nlohmann::json ParseJson(absl::string_view text, int depth) {
  if (NestsDeeperThan(text, depth)) return nlohmann::json::value_t::discarded;
  return nlohmann::json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

}  // namespace muster
