// Writes values as YAML that any reader, of version 1.1 too, reads back as the same.
#pragma once

#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace muster::codec {

// In block style, keys in their order. A text that could be taken for anything else (yes, 0042,
// 1e3,
// ~) is quoted; one of several lines is a literal block. Texts must be UTF-8.
std::string ToYaml(const nlohmann::ordered_json& value);

// The same of several, each a document of its own.
std::string ToYamlDocuments(const std::vector<nlohmann::ordered_json>& values);

}  // namespace muster::codec
