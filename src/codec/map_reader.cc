#include "codec/map_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/suggest.h"
#include "base/text/units.h"

namespace muster::codec {
namespace {

std::string Range(absl::string_view noun, const std::string& min, const std::string& max) {
  return absl::StrCat(noun, " from ", min, " to ", max);
}

}  // namespace

MapReader::MapReader(const Node& node, std::string what, Diagnostics& diagnostics)
    : node_(node), what_(std::move(what)), diagnostics_(diagnostics) {
  if (node.kind != Node::Kind::kMap && node.kind != Node::Kind::kNull) {
    diagnostics_.Add(node.mark, absl::StrCat(what_, " must be a map, not ", Describe(node)));
  }
}

const Node* MapReader::Find(absl::string_view key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
  return node_.Find(key);
}

const Node* MapReader::Require(absl::string_view key, absl::string_view expected) {
  const Node* value = Find(key);
  // The constructor has already reported a node that is not a map.
  const bool is_map = node_.kind == Node::Kind::kMap || node_.kind == Node::Kind::kNull;
  if (value == nullptr && is_map) {
    diagnostics_.Add(node_.mark, absl::StrCat(what_, " lacks '", key, "'; expected ", expected));
  }
  return value;
}

void MapReader::Mismatch(absl::string_view key, const Node& value, absl::string_view expected) {
  diagnostics_.Add(value.mark, absl::StrCat("'", key, "' of ", what_, " must be ", expected,
                                            ", not ", Describe(value)));
}

std::optional<std::string> MapReader::String(absl::string_view key) {
  const Node* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (value->kind == Node::Kind::kScalar) return value->scalar;
  Mismatch(key, *value, "text");
  return std::nullopt;
}

std::optional<int64_t> MapReader::Int(absl::string_view key, int64_t min, int64_t max) {
  const Node* value = Find(key);
  if (value == nullptr) return std::nullopt;
  const std::optional<int64_t> number = AsInt(*value);
  if (number && *number >= min && *number <= max) return number;
  Mismatch(key, *value, Range("a whole number", absl::StrCat(min), absl::StrCat(max)));
  return std::nullopt;
}

std::optional<double> MapReader::Number(absl::string_view key, double min, double max) {
  const Node* value = Find(key);
  if (value == nullptr) return std::nullopt;
  const std::optional<double> number = AsNumber(*value);
  if (number && *number >= min && *number <= max) return number;
  Mismatch(key, *value, Range("a number", absl::StrCat(min), absl::StrCat(max)));
  return std::nullopt;
}

std::optional<bool> MapReader::Bool(absl::string_view key) {
  const Node* value = Find(key);
  if (value == nullptr) return std::nullopt;
  const std::optional<bool> boolean = AsBool(*value);
  if (!boolean) Mismatch(key, *value, "true or false");
  return boolean;
}

std::optional<absl::Duration> MapReader::Duration(absl::string_view key) {
  const Node* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (value->kind == Node::Kind::kScalar) {
    if (const auto duration = base::ParseDuration(value->scalar); duration.ok()) {
      return absl::Trunc(*duration, absl::Milliseconds(1));
    }
  }
  Mismatch(key, *value, "a duration such as 90s, 5m, 1h30m or 2d");
  return std::nullopt;
}

std::optional<int64_t> MapReader::Bytes(absl::string_view key) {
  const Node* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (value->kind == Node::Kind::kScalar) {
    if (const auto bytes = base::ParseBytes(value->scalar); bytes.ok()) return *bytes;
  }
  Mismatch(key, *value, "a size such as 512, 64KiB, 100MB or 1.5G");
  return std::nullopt;
}

bool MapReader::CheckChoice(absl::string_view key, const Node& value,
                            const std::vector<std::string>& choices) {
  const bool scalar = value.kind == Node::Kind::kScalar;
  if (scalar && std::find(choices.begin(), choices.end(), value.scalar) != choices.end())
    return true;
  diagnostics_.Add(
      value.mark,
      absl::StrCat("'", key, "' of ", what_, " must be ", absl::StrJoin(choices, " | "), ", not ",
                   Describe(value), scalar ? base::DidYouMean(value.scalar, choices) : ""));
  return false;
}

std::optional<std::string> MapReader::Choice(absl::string_view key,
                                             const std::vector<std::string>& choices) {
  const Node* value = Find(key);
  if (value == nullptr || !CheckChoice(key, *value, choices)) return std::nullopt;
  return value->scalar;
}

std::vector<std::string> MapReader::ChoiceList(absl::string_view key,
                                               const std::vector<std::string>& choices) {
  std::vector<std::string> result;
  const Node* value = Find(key);
  if (value == nullptr) return result;
  if (value->kind != Node::Kind::kSequence) {
    Mismatch(key, *value, absl::StrCat("a list of ", absl::StrJoin(choices, " | ")));
  }
  for (const Node& item : value->items) {
    if (CheckChoice(key, item, choices)) result.push_back(item.scalar);
  }
  return result;
}

std::map<std::string, std::string> MapReader::StringMap(absl::string_view key) {
  std::map<std::string, std::string> result;
  const Node* value = Find(key);
  if (value == nullptr || value->kind == Node::Kind::kNull) return result;
  if (value->kind != Node::Kind::kMap) Mismatch(key, *value, "a map of text");
  for (const auto& [name, item] : value->entries) {
    if (item.kind == Node::Kind::kScalar) {
      result[name.name] = item.scalar;
    } else {
      diagnostics_.Add(item.mark, absl::StrCat(Quoted(name.name), " in '", key, "' of ", what_,
                                               " must be text, not ", Describe(item)));
    }
  }
  return result;
}

std::vector<std::string> MapReader::StringList(absl::string_view key) {
  std::vector<std::string> result;
  const Node* value = Find(key);
  if (value == nullptr) return result;
  if (value->kind != Node::Kind::kSequence) Mismatch(key, *value, "a list of text");
  for (const Node& item : value->items) {
    if (item.kind == Node::Kind::kScalar) {
      result.push_back(item.scalar);
    } else {
      diagnostics_.Add(item.mark, absl::StrCat("'", key, "' of ", what_,
                                               " must be a list of text, not of ", Describe(item)));
    }
  }
  return result;
}

void MapReader::Finish() {
  for (const auto& [key, value] : node_.entries) {
    if (std::find(known_.begin(), known_.end(), key.name) != known_.end()) continue;
    if (diagnostics_.full()) {
      diagnostics_.Add(key.mark, "");  // only counted: no edit distances are computed
      continue;
    }
    std::string hint = base::DidYouMean(key.name, known_);
    if (hint.empty()) {
      std::vector<std::string> sorted = known_;
      std::sort(sorted.begin(), sorted.end());
      hint = absl::StrCat("; expected one of: ", absl::StrJoin(sorted, ", "));
    }
    diagnostics_.Add(key.mark, absl::StrCat("unknown key ", Quoted(key.name), " in ", what_, hint));
  }
}

}  // namespace muster::codec
