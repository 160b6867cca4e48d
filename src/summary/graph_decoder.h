// Decodes the GraphDef messages of TensorFlow without generated classes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster::summary {

struct DecodedNode {
  std::string name;
  std::string op;
  std::string device;  // "" = none
  std::vector<std::string> inputs;
  std::optional<std::vector<int64_t>> shape;  // of its first output; unknown sizes are -1
  std::optional<int64_t> bytes;               // of its first output, if shape and type are known
};

// Returns the nodes of a GraphDef, or nullopt if it is malformed. An empty message has none.
std::optional<std::vector<DecodedNode>> DecodeGraph(absl::string_view graph_def);

}  // namespace muster::summary
