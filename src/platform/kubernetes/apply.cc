#include "platform/kubernetes/apply.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "k8s/error.h"
#include "manifest/names.h"

namespace muster::kubernetes {
namespace {

using Json = nlohmann::json;

constexpr absl::Duration kWriteTimeout = absl::Seconds(15);

absl::StatusOr<const k8s::ResourceKind*> KindOf(const Json& object) {
  if (k8s::TextAt(object, "/kind") == manifest::kTfJobs.kind) return &manifest::kTfJobs;
  const k8s::ResourceKind* kind =
      k8s::FindKind(k8s::TextAt(object, "/apiVersion"), k8s::TextAt(object, "/kind"));
  if (kind == nullptr) {
    return absl::InternalError(absl::StrCat("unknown kind ", k8s::TextAt(object, "/kind")));
  }
  return kind;
}

Json OwnerReference(const Json& job) {
  return {{"apiVersion", manifest::kTfJobs.ApiVersion()},
          {"kind", std::string(manifest::kTfJobs.kind)},
          {"name", k8s::NameOf(job)},
          {"uid", k8s::UidOf(job)}};
}

}  // namespace

absl::StatusOr<Json> ApplyObjects(k8s::Client& client, const std::vector<manifest::Object>& objects,
                                  std::vector<AppliedObject>* applied, const WarningSink& warn) {
  Json job;
  for (const manifest::Object& object : objects) {
    const Json json = object;
    MUSTER_ASSIGN_OR_RETURN(const k8s::ResourceKind* kind, KindOf(json));
    // Recorded before the request: without an answer the object may exist.
    applied->push_back({kind, k8s::KeyOf(json)});
    MUSTER_ASSIGN_OR_RETURN(job,
                            client.Apply(*kind, json, /*force=*/true, {.timeout = kWriteTimeout}));
  }
  const Json owned = {{"metadata", {{"ownerReferences", Json::array({OwnerReference(job)})}}}};
  for (size_t i = 0; i + 1 < applied->size(); ++i) {
    // An object without an owner is merely left behind when the job is deleted.
    const auto patched =
        client.Patch(*applied->at(i).kind, applied->at(i).key, owned, {.strategic_patch = true});
    if (!patched.ok()) warn(patched.status());
  }
  return job;
}

absl::Status RollBack(k8s::Client& client, const std::vector<AppliedObject>& applied,
                      const absl::Status& failure) {
  std::vector<std::string> left;
  for (const AppliedObject& one : applied) {
    const absl::Status removed = client.Delete(*one.kind, one.key);
    if (!removed.ok() && !k8s::IsNoSuchObject(removed) && !k8s::IsUnknownResource(removed)) {
      left.push_back(absl::StrCat(one.kind->plural, "/", one.key.name));
    }
  }
  if (left.empty()) return failure;
  return base::Annotate(
      failure, absl::StrCat("objects that may be left in the cluster; delete them manually: ",
                            absl::StrJoin(left, ", ")));
}

absl::Status DeleteObsolete(k8s::Client& client, const std::vector<manifest::Object>& before,
                            const std::vector<AppliedObject>& applied, const WarningSink& warn) {
  for (const manifest::Object& object : before) {
    const Json json = object;
    MUSTER_ASSIGN_OR_RETURN(const k8s::ResourceKind* kind, KindOf(json));
    const bool stays = std::any_of(applied.begin(), applied.end(), [&](const AppliedObject& one) {
      return one.kind == kind && one.key == k8s::KeyOf(json);
    });
    if (stays) continue;
    const absl::Status removed = client.Delete(*kind, k8s::KeyOf(json));
    if (!removed.ok() && !k8s::IsNoSuchObject(removed)) warn(removed);
  }
  return absl::OkStatus();
}

}  // namespace muster::kubernetes
