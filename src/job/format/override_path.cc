#include "job/format/override_path.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster::job {
namespace {

using codec::Mark;
using codec::Node;

absl::Status Malformed(absl::string_view path) {
  return absl::InvalidArgumentError(
      absl::StrCat(codec::Quoted(path),
                   " is not a path; expected keys separated by dots, such as "
                   "roles.worker.replicas or spec.containers[0].image"));
}

// Consumes the key at the front of `rest`.
std::string TakeKey(absl::string_view& rest) {
  std::string key;
  while (!rest.empty() && rest[0] != '.' && rest[0] != '[') {
    if (rest[0] == '\\' && rest.size() > 1) rest.remove_prefix(1);
    key.push_back(rest[0]);
    rest.remove_prefix(1);
  }
  return key;
}

// Consumes "[INDEX]" at the front of `rest`. Returns false if it is malformed.
bool TakeIndex(absl::string_view& rest, size_t& index) {
  const size_t end = rest.find(']');
  if (end == absl::string_view::npos) return false;
  const absl::string_view digits = rest.substr(1, end - 1);
  rest.remove_prefix(end + 1);
  return digits.find_first_not_of("0123456789") == absl::string_view::npos &&
         absl::SimpleAtoi(digits, &index);
}

// Names a path up to and including `count` steps.
std::string NameOf(const std::vector<PathStep>& path, size_t count) {
  std::string name;
  for (size_t i = 0; i < count; ++i) {
    if (path[i].is_index) {
      absl::StrAppend(&name, "[", path[i].index, "]");
    } else {
      absl::StrAppend(&name, name.empty() ? "" : ".", path[i].key);
    }
  }
  return count == 0 ? "the file" : codec::Quoted(name);
}

// Returns OK if `node`, found after `count` steps, has or can get the part that the next step
// names. A null node can become a map or a list.
absl::Status CheckStep(const std::vector<PathStep>& path, size_t count, const Node& node) {
  const PathStep& step = path[count];
  const Node::Kind wanted = step.is_index ? Node::Kind::kSequence : Node::Kind::kMap;
  if (node.kind != wanted && node.kind != Node::Kind::kNull) {
    return absl::InvalidArgumentError(absl::StrCat(NameOf(path, count), " is ", Describe(node),
                                                   ", not ", step.is_index ? "a list" : "a map",
                                                   ", in the file; set it as a whole"));
  }
  if (step.is_index && step.index > node.items.size()) {
    return absl::InvalidArgumentError(absl::StrCat(NameOf(path, count), " has ", node.items.size(),
                                                   " items in the file; the next index is ",
                                                   node.items.size()));
  }
  return absl::OkStatus();
}

const Node* Existing(const PathStep& step, const Node& node) {
  if (!step.is_index) return node.Find(step.key);
  return step.index < node.items.size() ? &node.items[step.index] : nullptr;
}

}  // namespace

absl::StatusOr<std::vector<PathStep>> ParsePath(absl::string_view path) {
  std::vector<PathStep> steps;
  absl::string_view rest = path;
  do {
    if (!steps.empty()) rest.remove_prefix(1);  // the dot
    PathStep step{.key = TakeKey(rest)};
    if (step.key.empty()) return Malformed(path);
    steps.push_back(std::move(step));
    while (!rest.empty() && rest[0] == '[') {
      PathStep item{.is_index = true};
      if (!TakeIndex(rest, item.index)) return Malformed(path);
      steps.push_back(item);
    }
    if (!rest.empty() && rest[0] != '.') return Malformed(path);
  } while (!rest.empty());
  return steps;
}

Node* FindValue(Node& map, absl::string_view key) { return const_cast<Node*>(map.Find(key)); }

Node& ValueOf(Node& map, absl::string_view key, Mark mark) {
  if (map.kind == Node::Kind::kNull) map.kind = Node::Kind::kMap;
  if (Node* found = FindValue(map, key)) return *found;
  map.entries.push_back({{std::string(key), mark}, {.mark = mark}});
  return map.entries.back().value;
}

absl::StatusOr<Node*> FindOrCreate(const std::vector<PathStep>& path, Mark mark, Node& root) {
  const Node* seen = &root;
  const Node absent;
  for (size_t i = 0; i < path.size(); ++i) {
    if (const absl::Status status = CheckStep(path, i, *seen); !status.ok()) return status;
    seen = Existing(path[i], *seen);
    if (seen == nullptr) seen = &absent;
  }
  Node* node = &root;
  for (const PathStep& step : path) {
    if (!step.is_index) {
      node = &ValueOf(*node, step.key, mark);
      continue;
    }
    node->kind = Node::Kind::kSequence;
    if (step.index == node->items.size()) node->items.push_back({.mark = mark});
    node = &node->items[step.index];
  }
  return node;
}

}  // namespace muster::job
