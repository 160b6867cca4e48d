// A JSON object as Nodes: for objects that come from an API and have no text to point into.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "codec/diagnostics.h"
#include "codec/node.h"
#include "codec/yaml.h"
#include "nlohmann/json.hpp"

namespace muster::codec {

// Marks of the nodes stand for field paths, such as spec.containers[0].env, in document order.
class ObjectNodes {
 public:
  // `object` must outlive this.
  explicit ObjectNodes(const nlohmann::json& object) : object_(object) {}
  ObjectNodes(const ObjectNodes&) = delete;
  ObjectNodes& operator=(const ObjectNodes&) = delete;

  // The tree of the object. An object beyond the limits is a diagnostic, and the result is null.
  Node Build(const ParseLimits& limits, Diagnostics& diagnostics);

  // The path of a mark; "" for the object itself.
  std::string PathOf(Mark mark) const;

 private:
  struct Place {
    int parent = 0;                    // its line; 0: none
    const std::string* key = nullptr;  // null: an item of a list
    size_t index = 0;
  };

  bool Add(const nlohmann::json& value, Place place, int depth, Node& node);
  Mark MarkOf(const Place& place);

  const nlohmann::json& object_;
  std::vector<Place> places_;  // of line n at n - 1
  ParseLimits limits_;
  std::string exceeded_;  // the limit
};

}  // namespace muster::codec
