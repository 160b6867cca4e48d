// Reads TFJob manifests: kubeflow.org/v1 and its predecessors (docs/job-file.md).
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "codec/diagnostics.h"
#include "codec/node.h"
#include "job/job_spec.h"

namespace muster::job {

// Annotations for settings that a TFJob has no field for.
inline constexpr char kFormatAnnotation[] = "muster/format";  // of the job file
inline constexpr char kModelDirAnnotation[] = "muster/model-dir";
inline constexpr char kMaxRestartsAnnotation[] = "muster/max-restarts";  // of each task
inline constexpr char kRestartScopeAnnotation[] = "muster/restart-scope";
// Seconds for which tasks may keep running after the job has succeeded.
inline constexpr char kFinishGraceAnnotation[] = "muster/finish-grace";
inline constexpr char kStartOrderAnnotation[] = "muster/start-order";  // of roles: "ps,worker"
inline constexpr char kUpdateAnnotation[] = "muster/update";           // recreate, rolling or never
// Fields of v1alpha1 that v1 does not have: the task that decides how the job ends ("worker:1"),
// the `tensorboard` section as JSON with its `image`, and the RuntimeId in the names of pods.
inline constexpr char kChiefAnnotation[] = "muster/chief";
inline constexpr char kTensorboardAnnotation[] = "muster/tensorboard";
inline constexpr char kRuntimeIdAnnotation[] = "muster/runtime-id";
// Written by the operator: status fields that the CRD of the cluster prunes, as JSON.
inline constexpr char kStatusAnnotation[] = "muster/status";
// Value of kFormatAnnotation for a native job: its commands may contain placeholders, and its tasks
// get the same variables as on other platforms.
inline constexpr char kNativeFormat[] = "native";

// Returns the TFJob's name of a role ("PS"), or "" if a TFJob has no such role.
std::string TfJobRoleName(absl::string_view role);
std::string TfJobPolicyName(RestartPolicy policy);

// Return the job. It is valid only if `diagnostics` has no errors.
JobSpec ReadTfJobV1(const codec::Node& document, codec::Diagnostics& diagnostics);
// Reads v1alpha2, v1beta1 and v1beta2, which have the fields of v1's runPolicy in `spec` itself.
JobSpec ReadTfJobV1Beta(const codec::Node& document, codec::Diagnostics& diagnostics);
// Reads the versions whose replicas are a list: v1alpha1, of TensorFlow and of Kubeflow.
JobSpec ReadTfJobV1Alpha1(const codec::Node& document, codec::Diagnostics& diagnostics);

}  // namespace muster::job
