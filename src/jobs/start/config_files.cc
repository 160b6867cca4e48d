#include "jobs/start/config_files.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "codec/yaml.h"
#include "codec/yaml_writer.h"

namespace muster::jobs {
namespace {

using codec::Node;

void Merge(Node later, Node& result) {
  if (later.kind != Node::Kind::kMap || result.kind != Node::Kind::kMap) {
    result = std::move(later);
    return;
  }
  for (codec::Entry& entry : later.entries) {
    const auto same = std::find_if(
        result.entries.begin(), result.entries.end(),
        [&entry](const codec::Entry& other) { return other.key.name == entry.key.name; });
    if (same != result.entries.end()) {
      Merge(std::move(entry.value), same->value);
    } else {
      result.entries.push_back(std::move(entry));
    }
  }
}

absl::StatusOr<Node> Read(const ConfigFile& file) {
  codec::Diagnostics diagnostics(file.name());
  std::vector<Node> documents = codec::ParseYaml(file.text, {}, diagnostics);
  if (!diagnostics.empty()) return diagnostics.ToStatus();
  if (documents.size() == 1 && documents[0].kind == Node::Kind::kMap) {
    return std::move(documents[0]);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(file.name(), ": must contain a single map, to be merged with the other files"));
}

}  // namespace

absl::StatusOr<std::string> MergeConfigs(const std::vector<ConfigFile>& files) {
  if (files.size() == 1) return files.front().text;
  Node merged{.kind = Node::Kind::kMap};
  for (const ConfigFile& file : files) {
    MUSTER_ASSIGN_OR_RETURN(Node document, Read(file));
    Merge(std::move(document), merged);
  }
  return codec::ToYaml(merged);
}

}  // namespace muster::jobs
