// Parses untrusted JSON and reads its members.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace muster::base {

// nlohmann-json copies, compares and prints recursively, so a deeper document could exhaust the
// stack.
inline constexpr int kMaxJsonDepth = 256;

// Returns true if the objects and arrays in `text` nest deeper than `depth`. The text need not be
// valid JSON.
bool NestsDeeperThan(absl::string_view text, int depth);

// Returns the document. Returns a discarded value (is_discarded(); no is_object(), is_array(), …
// holds) if the text is not valid JSON or nests deeper than `depth`.
nlohmann::json ParseJson(absl::string_view text, int depth = kMaxJsonDepth);

// Each of these functions returns the member `key` of an object. If `json` is not an object, or the
// member is absent or of another type, the result is an empty value: null, "", 0, false, an empty
// list, or nullopt.
//
// The result of MemberOf() is valid as long as `json`.
const nlohmann::json& MemberOf(const nlohmann::json& json, absl::string_view key);
std::string TextMember(const nlohmann::json& json, absl::string_view key);
int64_t IntMember(const nlohmann::json& json, absl::string_view key);
std::optional<int64_t> OptionalIntMember(const nlohmann::json& json, absl::string_view key);
bool BoolMember(const nlohmann::json& json, absl::string_view key);
// Skips elements of the list that are not strings.
std::vector<std::string> TextListMember(const nlohmann::json& json, absl::string_view key);

}  // namespace muster::base
