// A document (YAML, and so JSON) as a tree in which every value and every key knows its place.
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
  bool quoted = false;         // the scalar was quoted, so it is a string whatever it looks like
  std::vector<Node> items;     // of a kSequence
  std::vector<Entry> entries;  // of a kMap; names are unique

  // The value of `key`, or null when this is no map or has no such key.
  const Node* Find(absl::string_view key) const;
};

struct Entry {
  Key key;
  Node value;
};

// What an unquoted scalar means by YAML 1.2's core schema; nullopt when it means something else. A
// number without a fraction is an integer however it is written: 2000, 2e3, 0x7d0.
std::optional<bool> AsBool(const Node& node);
std::optional<int64_t> AsInt(const Node& node);
std::optional<double> AsNumber(const Node& node);

// "a map", "a list", "text 'abc'", "the number 5", "nothing": for messages.
std::string Describe(const Node& node);

// By YAML 1.2's core schema: an unquoted 5 is a number, true a boolean, null a null. Numbers that
// JSON has no form for (.inf, .nan) stay text.
nlohmann::json ToJson(const Node& node);

}  // namespace muster::codec
