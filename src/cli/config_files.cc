#include "cli/config_files.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "codec/yaml.h"
#include "codec/yaml_writer.h"

namespace muster::cli {
namespace {

using Json = nlohmann::ordered_json;
using codec::Node;

// Converts a node and keeps the order of its keys, which is the order of roles.
Json InOrder(const Node& node) {
  if (node.kind != Node::Kind::kMap) return codec::ToJson(node);
  Json json = Json::object();
  for (const codec::Entry& entry : node.entries) json[entry.key.name] = InOrder(entry.value);
  return json;
}

void Merge(const Json& later, Json& result) {
  if (!later.is_object() || !result.is_object()) {
    result = later;
    return;
  }
  for (const auto& [key, value] : later.items()) Merge(value, result[key]);
}

absl::StatusOr<Json> Read(const ConfigFile& file) {
  codec::Diagnostics diagnostics(file.name);
  const std::vector<Node> documents = codec::ParseYaml(file.text, {}, diagnostics);
  if (!diagnostics.empty()) return diagnostics.ToStatus();
  if (documents.size() == 1 && documents[0].kind == Node::Kind::kMap) return InOrder(documents[0]);
  return absl::InvalidArgumentError(
      absl::StrCat(file.name, ": must hold one map, to be joined with the other files"));
}

}  // namespace

absl::StatusOr<std::string> MergeConfigs(const std::vector<ConfigFile>& files) {
  if (files.size() == 1) return files.front().text;
  Json merged = Json::object();
  for (const ConfigFile& file : files) {
    MUSTER_ASSIGN_OR_RETURN(const Json json, Read(file));
    Merge(json, merged);
  }
  return codec::ToYaml(merged);
}

}  // namespace muster::cli
