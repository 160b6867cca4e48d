#include "manifest/work_files.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files/files.h"

namespace muster::manifest {
namespace {

using Object = nlohmann::ordered_json;

constexpr char kPartsFolder[] = "/muster/parts";
constexpr char kPartsVolume[] = "muster-files";
constexpr char kWorkVolume[] = "muster-work";

// The names of parts sort like their numbers, so that the shell lists them in order.
std::string PartName(int index) { return absl::StrFormat("part-%03d", index); }

// Returns the requests and limits for processors and memory, which a quota may demand of every
// container. Devices are left to the task.
Object BasicResources(const Object& resources) {
  Object basic = Object::object();
  for (const auto& [kind, quantities] : resources.items()) {
    if (!quantities.is_object()) continue;
    for (const char* name : {"cpu", "memory"}) {
      if (quantities.contains(name)) basic[kind][name] = quantities[name];
    }
  }
  return basic;
}

Object Unpacker(const Object& container) {
  Object unpacker = {
      {"name", "files"},
      {"image", container["image"]},
      {"command",
       {"sh", "-c",
        absl::StrCat("cat ", kPartsFolder, "/part-* | gzip -dc | tar -xf - -C ", kWorkFolder)}},
      // The reason of a failure, such as a missing tar.
      {"terminationMessagePolicy", "FallbackToLogsOnError"}};
  for (const char* key : {"imagePullPolicy", "securityContext"}) {
    if (container.contains(key)) unpacker[key] = container[key];
  }
  if (container.contains("resources")) {
    unpacker["resources"] = BasicResources(container["resources"]);
  }
  unpacker["volumeMounts"] = {
      {{"name", kPartsVolume}, {"mountPath", kPartsFolder}, {"readOnly", true}},
      {{"name", kWorkVolume}, {"mountPath", kWorkFolder}}};
  return unpacker;
}

}  // namespace

bool MountsWorkFiles(const job::KubernetesFiles& files, const job::RoleSpec& role) {
  return std::find(files.roles.begin(), files.roles.end(), role.name) != files.roles.end();
}

std::string WorkFilesName(const job::JobSpec& spec, const job::KubernetesFiles& files, int index) {
  return absl::StrCat(spec.name, "-files-", files.digest, "-", index);
}

Object WorkFilesConfig(Object metadata, int index, const std::string& content) {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", std::move(metadata)},
          {"immutable", true},
          {"binaryData", {{PartName(index), absl::Base64Escape(content)}}}};
}

void AddWorkFiles(const job::JobSpec& spec, const job::KubernetesFiles& files,
                  const std::string& folder, Object& pod_spec, Object& container) {
  container["workingDir"] = folder.empty() ? kWorkFolder : base::JoinPath(kWorkFolder, folder);
  container["volumeMounts"].push_back({{"name", kWorkVolume}, {"mountPath", kWorkFolder}});
  pod_spec["initContainers"].push_back(Unpacker(container));
  Object sources = Object::array();
  for (int i = 0; i < files.parts; ++i) {
    sources.push_back({{"configMap", {{"name", WorkFilesName(spec, files, i)}}}});
  }
  pod_spec["volumes"].push_back(
      {{"name", kPartsVolume}, {"projected", {{"sources", std::move(sources)}}}});
  pod_spec["volumes"].push_back({{"name", kWorkVolume}, {"emptyDir", Object::object()}});
}

}  // namespace muster::manifest
