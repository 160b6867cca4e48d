#include "manifest/tf_server.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/bytes/digest.h"
#include "job/images.h"
#include "job/tf_server.h"

namespace muster::manifest {
namespace {

using Object = nlohmann::ordered_json;

constexpr char kVolume[] = "tf-server";
constexpr size_t kDigestDigits = 8;
// Images of TensorFlow 1 have Python 2 under this name, newer ones Python 3.
constexpr char kPython[] = "python";

bool HasText(const Object& object, const char* key, absl::string_view text) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() && found->get<std::string>() == text;
}

// Returns `object[key]` as a list, which it creates if it is not one.
Object& ListOf(Object& object, const char* key) {
  Object& list = object[key];
  if (!list.is_array()) list = Object::array();
  return list;
}

void EraseIf(Object& list, const std::function<bool(const Object&)>& predicate) {
  Object kept = Object::array();
  for (const Object& item : list) {
    if (!predicate(item)) kept.push_back(item);
  }
  list = std::move(kept);
}

// Removes mounts at the folder of the program, and the volumes that they mount.
void Unmount(Object& pod_spec, Object& container) {
  std::vector<std::string> removed = {kVolume};
  EraseIf(ListOf(container, "volumeMounts"), [&](const Object& mount) {
    if (!HasText(mount, "mountPath", job::kTfServerFolder)) return false;
    removed.push_back(mount.value("name", ""));
    return true;
  });
  EraseIf(ListOf(pod_spec, "volumes"), [&](const Object& volume) {
    return std::any_of(removed.begin(), removed.end(),
                       [&](const std::string& name) { return HasText(volume, "name", name); });
  });
}

}  // namespace

std::string TfServerName(const job::JobSpec& spec) {
  static const auto& kDigest =
      *new std::string(base::Sha256Hex(job::TfServerProgram()).substr(0, kDigestDigits));
  return absl::StrCat(spec.name, "-tf-server-", kDigest);
}

Object TfServerConfig(Object metadata) {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", std::move(metadata)},
          {"immutable", true},
          {"data", {{job::kTfServerFile, std::string(job::TfServerProgram())}}}};
}

bool MountsTfServer(const job::JobSpec& spec, const job::RoleSpec& role) {
  return role.server == job::Server::kTensorFlow &&
         (spec.format != job::JobFormat::kRenderedCluster ||
          job::IsStockTensorflowImage(role.image));
}

bool MountsTfServer(const job::JobSpec& spec) {
  return std::any_of(spec.roles.begin(), spec.roles.end(),
                     [&](const job::RoleSpec& role) { return MountsTfServer(spec, role); });
}

std::string TfServerPath() { return absl::StrCat(job::kTfServerFolder, "/", job::kTfServerFile); }

std::vector<std::string> TfServerCommand() { return {kPython, TfServerPath()}; }

void AddTfServer(const job::JobSpec& spec, Object& pod_spec, Object& container) {
  Unmount(pod_spec, container);
  container["command"] = TfServerCommand();
  container.erase("args");
  container["volumeMounts"].push_back(
      {{"name", kVolume}, {"mountPath", job::kTfServerFolder}, {"readOnly", true}});
  pod_spec["volumes"].push_back({{"name", kVolume}, {"configMap", {{"name", TfServerName(spec)}}}});
}

std::string JobConfigLiteral(const job::JobSpec& spec) {
  return absl::StrCat("[",
                      absl::StrJoin(spec.roles, ", ",
                                    [](std::string* out, const job::RoleSpec& role) {
                                      absl::StrAppend(out, "{'name': '", role.name,
                                                      "', 'num_tasks': ", role.replicas, "}");
                                    }),
                      "]");
}

}  // namespace muster::manifest
