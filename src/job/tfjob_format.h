// TFJob manifests: kubeflow.org/v1 and its ancestor tensorflow.org/v1alpha1 (docs/job-file.md).
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "codec/diagnostics.h"
#include "codec/node.h"
#include "job/job_spec.h"

namespace muster {

// Annotations of a TFJob that hold what it has no fields for.
inline constexpr char kFormatAnnotation[] = "muster/format";  // of the job inside
inline constexpr char kModelDirAnnotation[] = "muster/model-dir";
inline constexpr char kMaxRestartsAnnotation[] = "muster/max-restarts";  // of each task
inline constexpr char kRestartScopeAnnotation[] = "muster/restart-scope";
// After the job's success, for tasks that still run to end by themselves: seconds.
inline constexpr char kFinishGraceAnnotation[] = "muster/finish-grace";
inline constexpr char kStartOrderAnnotation[] = "muster/start-order";  // of roles: "ps,worker"
inline constexpr char kUpdateAnnotation[] = "muster/update";           // recreate, rolling or never
// Written by the operator: fields of the status that the cluster's CRD prunes, as JSON.
inline constexpr char kStatusAnnotation[] = "muster/status";
// A native job: its commands may hold placeholders, and its tasks get every variable that they
// would get elsewhere.
inline constexpr char kNativeFormat[] = "native";

// A role as a TFJob spells it ("PS"); "" when it knows no such role.
std::string TfJobRoleName(absl::string_view role);
std::string TfJobPolicyName(RestartPolicy policy);

// The jobs are worth using only when `diagnostics` stayed empty.
JobSpec ReadTfJobV1(const codec::Node& document, codec::Diagnostics& diagnostics);
JobSpec ReadTfJobV1Alpha1(const codec::Node& document, codec::Diagnostics& diagnostics);

}  // namespace muster
