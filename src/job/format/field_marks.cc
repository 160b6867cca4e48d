#include "job/format/field_marks.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "codec/yaml.h"

namespace muster::job {
namespace {

// Ignores case, as manifests do for roles: "Worker" matches "worker".
const codec::Node* FindKey(const codec::Node& node, absl::string_view name) {
  for (const codec::Entry& entry : node.entries) {
    if (absl::EqualsIgnoreCase(entry.key.name, name)) return &entry.value;
  }
  return nullptr;
}

}  // namespace

FieldMarks::FieldMarks(const Submission& submission) {
  if (HasGeneratedSource(submission)) return;
  codec::Diagnostics ignored("");
  for (codec::Node& document : codec::ParseYaml(submission.source, {}, ignored)) {
    const bool is_job = std::any_of(
        document.entries.begin(), document.entries.end(), [](const codec::Entry& entry) {
          return entry.key.name == "roles" || entry.key.name == "train" ||
                 entry.key.name == "spec" || entry.key.name == "resources";
        });
    if (is_job) document_ = std::move(document);
    if (is_job) return;
  }
}

FieldMarks::Step FieldMarks::Walk(const std::vector<std::string>& path) const {
  const codec::Node* node = &document_;
  for (const std::string& key : path) {
    const codec::Node* next = FindKey(*node, key);
    if (next == nullptr) return {.mark = node->mark};
    node = next;
  }
  return {.mark = node->mark, .whole = true};
}

codec::Mark FieldMarks::Of(const std::vector<std::string>& path) const { return Walk(path).mark; }

codec::Mark FieldMarks::OfRole(const std::string& role, const std::string& field) const {
  if (document_.Find("spec") != nullptr) {
    return Of({"spec", "tfReplicaSpecs", role, "template", "spec", "containers"});
  }
  if (const Step own = Walk({"roles", role, field}); own.whole) return own.mark;
  if (const Step common = Walk({field}); common.whole) return common.mark;
  return Of({"roles", role});
}

}  // namespace muster::job
