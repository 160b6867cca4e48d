// Reads a job file: Muster's own YAML, a TFJob manifest (kubeflow.org/v1 or
// tensorflow.org/v1alpha1) or the rendered-cluster config.yaml. Which one it is, is told from its
// keys.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "job/job_spec.h"

namespace muster {

struct ParseJobOptions {
  std::string file_name;    // for messages
  std::string working_dir;  // absolute; relative model_dir and data paths are resolved against it
  // Receives what is no mistake and may not be meant, one "file:line:column: text" each.
  std::vector<std::string>* warnings = nullptr;
};

// InvalidArgument when the text has mistakes: the message holds all of them, one a line, each
// "file:line:column: what is wrong; what was expected (did you mean 'x'?)". Never throws, never
// hangs: size, depth and the number of nodes and tasks are limited.
absl::StatusOr<JobSpec> ParseJob(absl::string_view text, const ParseJobOptions& options);

// The same of a TFJob as an API server returns it: a message names the field ("spec.runPolicy: …"),
// since no text of it was written by anybody.
absl::StatusOr<JobSpec> ParseTfJobObject(const nlohmann::json& object,
                                         std::vector<std::string>* warnings = nullptr);

// Limits, named in the messages and in docs/job-file.md.
inline constexpr int kMaxReplicas = 4096;  // per role
inline constexpr int kMaxTasks = 10000;    // per job
inline constexpr int64_t kMaxJobFileBytes = 4 << 20;
// The pod templates of a TFJob, each as often as it has replicas: they are kept in one etcd.
inline constexpr int64_t kMaxTemplateBytes = 256 << 20;

}  // namespace muster
