// Text -> Node. The only file that knows yaml-cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "codec/diagnostics.h"
#include "codec/node.h"

namespace muster::codec {

// What a hostile text may cost. Aliases count as often as they are used.
struct ParseLimits {
  int64_t bytes = 4 << 20;
  int depth = 64;
  int64_t nodes = 200'000;
  int documents = 64;
};

// Every document of the text that is not empty. Merge keys (`<<`) are resolved. Syntax errors,
// duplicate keys, keys that are not text and exceeded limits go to `diagnostics`; the result is
// then empty. Never throws.
std::vector<Node> ParseYaml(absl::string_view text, const ParseLimits& limits,
                            Diagnostics& diagnostics);

}  // namespace muster::codec
