// Parses YAML (and so JSON) text into Nodes. The only user of yaml-cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "codec/diagnostics.h"
#include "codec/node.h"

namespace muster::codec {

// Bounds the cost of parsing hostile text. An alias counts each time it is used.
struct ParseLimits {
  int64_t bytes = 4 << 20;
  int depth = 64;
  int64_t nodes = 200'000;
  int documents = 64;
};

// Returns the documents of the text that are not empty, with merge keys (`<<`) resolved. Reports
// syntax errors, keys that are not text and exceeded limits to `diagnostics` and then returns an
// empty vector; reports duplicate keys and continues. Never throws.
std::vector<Node> ParseYaml(absl::string_view text, const ParseLimits& limits,
                            Diagnostics& diagnostics);

}  // namespace muster::codec
