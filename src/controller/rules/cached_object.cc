#include "controller/rules/cached_object.h"

#include <utility>

#include "absl/strings/match.h"
#include "controller/rules/tfjob.h"
#include "manifest/pod_status.h"

namespace muster::controller {
namespace {

void Erase(Json& object, std::initializer_list<const char*> keys) {
  for (const char* key : keys) object.erase(key);
}

// Keeps the labels or annotations with that prefix.
void KeepOwn(Json& metadata, const char* key, absl::string_view prefix) {
  const auto found = metadata.find(key);
  if (found == metadata.end() || !found->is_object()) return;
  Json own = Json::object();
  for (auto& [name, value] : found->items()) {
    if (absl::StartsWith(name, prefix)) own[name] = std::move(value);
  }
  if (own.empty()) {
    metadata.erase(found);
  } else {
    *found = std::move(own);
  }
}

void ShortenOwners(Json& metadata) {
  const auto owners = metadata.find("ownerReferences");
  if (owners == metadata.end() || !owners->is_array()) return;
  for (Json& owner : *owners) {
    if (owner.is_object()) Erase(owner, {"apiVersion", "kind", "name", "blockOwnerDeletion"});
  }
}

void ShortenStatus(Json& status) {
  Json conditions = Json::array();
  for (const char* type : {"Ready", manifest::kDisruptionTarget}) {
    const Json* condition = k8s::FindTrueCondition(status, type);
    if (condition == nullptr) continue;
    conditions.push_back(*condition);
    Erase(conditions.back(), {"lastProbeTime", "lastTransitionTime", "observedGeneration"});
  }
  Erase(status, {"conditions", "hostIP", "hostIPs", "podIP", "podIPs", "qosClass", "loadBalancer"});
  if (!conditions.empty()) status["conditions"] = std::move(conditions);
  const auto containers = status.find("containerStatuses");
  if (containers == status.end() || !containers->is_array()) return;
  for (Json& container : *containers) {
    if (container.is_object()) Erase(container, {"image", "imageID", "containerID"});
  }
}

}  // namespace

void DropManagedFields(Json& object) {
  const auto metadata = object.find("metadata");
  if (metadata != object.end() && metadata->is_object()) metadata->erase("managedFields");
}

void TrimForCache(Json& object) {
  if (!object.is_object()) return;
  Erase(object, {"apiVersion", "kind", "spec"});
  if (const auto metadata = object.find("metadata");
      metadata != object.end() && metadata->is_object()) {
    Erase(*metadata, {"managedFields", "selfLink", "generateName", "creationTimestamp"});
    KeepOwn(*metadata, "labels", kLabelPrefix);
    KeepOwn(*metadata, "annotations", "muster/");
    ShortenOwners(*metadata);
  }
  if (const auto status = object.find("status"); status != object.end() && status->is_object()) {
    ShortenStatus(*status);
    if (status->empty()) object.erase(status);
  }
}

}  // namespace muster::controller
