// Applies the objects of a job to a cluster and deletes them.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "k8s/client.h"
#include "manifest/pods.h"
#include "nlohmann/json.hpp"

namespace muster::kubernetes {

// An object that exists or, if its request got no response, may exist.
struct AppliedObject {
  const k8s::ResourceKind* kind;
  k8s::ObjectKey key;
};

// Receives failures that do not stop the operation.
using WarningSink = std::function<void(const absl::Status&)>;

// Applies the objects in order, then makes the last one, the TFJob, the owner of the others. So a
// TFJob never exists without the objects that it needs. Appends each object to `applied` before its
// request. Returns the TFJob.
absl::StatusOr<nlohmann::json> ApplyObjects(k8s::Client& client,
                                            const std::vector<manifest::Object>& objects,
                                            std::vector<AppliedObject>* applied,
                                            const WarningSink& warn);

// Deletes the objects that a failed ApplyObjects() left behind. Returns `failure`, with the names
// of the objects that could not be deleted.
absl::Status RollBack(k8s::Client& client, const std::vector<AppliedObject>& applied,
                      const absl::Status& failure);

// Deletes the objects of `before` that are not in `applied`.
absl::Status DeleteObsolete(k8s::Client& client, const std::vector<manifest::Object>& before,
                            const std::vector<AppliedObject>& applied, const WarningSink& warn);

}  // namespace muster::kubernetes
