// A YAML or JSON document as a tree; every key and value carries its position.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "codec/diagnostics.h"
#include "nlohmann/json.hpp"

namespace muster::codec {

struct Key {
  std::string name;
  Mark mark;
};

struct Entry;

struct Node {
  enum class Kind { kNull, kScalar, kSequence, kMap };

  Kind kind = Kind::kNull;
  Mark mark;
  std::string scalar;          // of a kScalar
  bool quoted = false;         // the scalar was quoted, so it is always a string
  std::vector<Node> items;     // of a kSequence
  std::vector<Entry> entries;  // of a kMap; names are unique

  // Returns the value of `key`, or null if this is not a map or has no such key. Linear search.
  const Node* Find(absl::string_view key) const;
};

struct Entry {
  Key key;
  Node value;
};

// Interpret an unquoted scalar by the YAML 1.2 core schema. Return nullopt if the node is anything
// else. A number without a fractional part is an integer in any notation: 2000, 2e3, 0x7d0.
std::optional<bool> AsBool(const Node& node);
std::optional<int64_t> AsInt(const Node& node);
std::optional<double> AsNumber(const Node& node);

// Describes a node for messages: "a map", "a list", "text 'abc'", "the number 5", "nothing".
std::string Describe(const Node& node);

// Converts by the YAML 1.2 core schema: an unquoted 5 becomes a number, true a boolean, null a
// null. Numbers that JSON cannot express (.inf, .nan) stay text.
nlohmann::json ToJson(const Node& node);

}  // namespace muster::codec
