#include "codec/object_nodes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace muster::codec {
namespace {

// Longer keys are quoted and shortened like other text in messages.
constexpr size_t kMaxPlainKey = 60;

bool IsPlainKey(absl::string_view key) {
  return !key.empty() && key.size() <= kMaxPlainKey &&
         std::all_of(key.begin(), key.end(),
                     [](char c) { return absl::ascii_isalnum(c) || c == '_' || c == '-'; });
}

}  // namespace

Mark ObjectNodes::MarkOf(const Step& step) {
  steps_.push_back(step);
  return {.line = static_cast<int>(steps_.size()), .column = 1};
}

bool ObjectNodes::Add(const nlohmann::json& value, Step step, int depth, Node& node) {
  if (depth > limits_.depth) exceeded_ = absl::StrCat("nested deeper than ", limits_.depth);
  // Counts the members up front, so that a wide list is rejected before it takes memory.
  const size_t members = value.is_structured() ? value.size() : 0;
  if (static_cast<int64_t>(steps_.size() + members) >= limits_.nodes) {
    exceeded_ = absl::StrCat("larger than ", limits_.nodes, " values");
  }
  if (!exceeded_.empty()) return false;
  node.mark = MarkOf(step);
  const int line = node.mark.line;
  if (value.is_object()) {
    node.kind = Node::Kind::kMap;
    node.entries.reserve(value.size());
    for (const auto& [key, member] : value.items()) {
      Entry& entry = node.entries.emplace_back(Entry{.key = {.name = key}, .value = {}});
      // The iterator's key is a copy; the object's own outlives the tree.
      const std::string& own = value.find(key).key();
      if (!Add(member, {.parent = line, .key = &own}, depth + 1, entry.value)) return false;
      entry.key.mark = entry.value.mark;
    }
    return true;
  }
  if (value.is_array()) {
    node.kind = Node::Kind::kSequence;
    node.items.resize(value.size());
    for (size_t i = 0; i < value.size(); ++i) {
      if (!Add(value[i], {.parent = line, .index = i}, depth + 1, node.items[i])) return false;
    }
    return true;
  }
  if (value.is_null()) return true;
  node.kind = Node::Kind::kScalar;
  node.quoted = value.is_string();
  node.scalar = node.quoted ? value.get<std::string>() : value.dump();
  return true;
}

Node ObjectNodes::Build(const ParseLimits& limits, Diagnostics& diagnostics) {
  limits_ = limits;
  Node root;
  if (Add(object_, {}, 0, root)) return root;
  diagnostics.Add({}, absl::StrCat("the object is ", exceeded_));
  return {};
}

std::string ObjectNodes::PathOf(Mark mark) const {
  std::string path;
  for (int line = mark.line; line > 1 && line <= static_cast<int>(steps_.size());) {
    const Step& step = steps_[static_cast<size_t>(line - 1)];
    std::string text;
    if (step.key == nullptr) {
      text = absl::StrCat("[", step.index, "]");
    } else if (IsPlainKey(*step.key)) {
      text = absl::StrCat(".", *step.key);
    } else {
      text = absl::StrCat("[", Quoted(*step.key), "]");
    }
    path.insert(0, text);
    line = step.parent;
  }
  return path.substr(path.empty() || path[0] != '.' ? 0 : 1);
}

}  // namespace muster::codec
