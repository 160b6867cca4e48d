// Writes YAML that both YAML 1.1 and 1.2 readers read back unchanged.
#pragma once

#include <string>
#include <vector>

#include "codec/node.h"
#include "nlohmann/json.hpp"

namespace muster::codec {

// Returns `value` in block style with its key order. Quotes text that a reader could take for
// another type (yes, 0042, 1e3, ~), and writes text of several lines as a literal block. REQUIRES:
// text is UTF-8.
std::string ToYaml(const nlohmann::ordered_json& value);
// Likewise for parsed text. Numbers stay as written: 1.10, 0x1f.
std::string ToYaml(const Node& node);

// Returns several values, each as a document of its own.
std::string ToYamlDocuments(const std::vector<nlohmann::ordered_json>& values);
std::string ToYamlDocuments(const std::vector<Node>& nodes);

}  // namespace muster::codec
