// Converts a JSON object from an API, which has no text positions, to Nodes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "codec/diagnostics.h"
#include "codec/node.h"
#include "codec/yaml.h"
#include "nlohmann/json.hpp"

namespace muster::codec {

// Assigns each node a Mark that PathOf() maps to its field path, such as spec.containers[0].env.
// Marks are in document order. Not thread-safe.
class ObjectNodes {
 public:
  // `object` must outlive this ObjectNodes.
  explicit ObjectNodes(const nlohmann::json& object) : object_(object) {}
  ObjectNodes(const ObjectNodes&) = delete;
  ObjectNodes& operator=(const ObjectNodes&) = delete;

  // Returns the tree. Adds a diagnostic and returns a null node if the object exceeds the limits.
  // Call once.
  Node Build(const ParseLimits& limits, Diagnostics& diagnostics);

  // Returns the field path of a mark; "" for the object itself.
  std::string PathOf(Mark mark) const;

 private:
  // One step of a field path.
  struct Step {
    int parent = 0;                    // line of the parent; 0: none
    const std::string* key = nullptr;  // null: an item of a list
    size_t index = 0;
  };

  bool Add(const nlohmann::json& value, Step step, int depth, Node& node);
  Mark MarkOf(const Step& step);

  const nlohmann::json& object_;
  std::vector<Step> steps_;  // the step of line n is at n - 1
  ParseLimits limits_;
  std::string exceeded_;  // the exceeded limit; "": none
};

}  // namespace muster::codec
