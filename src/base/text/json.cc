#include "base/text/json.h"

namespace muster::base {

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

const nlohmann::json& MemberOf(const nlohmann::json& json, absl::string_view key) {
  static const auto& kNull = *new nlohmann::json();
  if (!json.is_object()) return kNull;
  const auto found = json.find(std::string(key));
  return found == json.end() ? kNull : *found;
}

std::string TextMember(const nlohmann::json& json, absl::string_view key) {
  const nlohmann::json& member = MemberOf(json, key);
  return member.is_string() ? member.get<std::string>() : "";
}

int64_t IntMember(const nlohmann::json& json, absl::string_view key) {
  return OptionalIntMember(json, key).value_or(0);
}

std::optional<int64_t> OptionalIntMember(const nlohmann::json& json, absl::string_view key) {
  const nlohmann::json& member = MemberOf(json, key);
  if (!member.is_number_integer()) return std::nullopt;
  return member.get<int64_t>();
}

bool BoolMember(const nlohmann::json& json, absl::string_view key) {
  const nlohmann::json& member = MemberOf(json, key);
  return member.is_boolean() && member.get<bool>();
}

std::vector<std::string> TextListMember(const nlohmann::json& json, absl::string_view key) {
  std::vector<std::string> texts;
  const nlohmann::json& member = MemberOf(json, key);
  if (!member.is_array()) return texts;
  for (const nlohmann::json& element : member) {
    if (element.is_string()) texts.push_back(element.get<std::string>());
  }
  return texts;
}

}  // namespace muster::base
