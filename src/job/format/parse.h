// Parses a job file: Muster's own YAML, a TFJob manifest (kubeflow.org/v1 or
// tensorflow.org/v1alpha1) or the rendered-cluster config.yaml. The keys of the file determine its
// format.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/variables.h"
#include "job/format/overrides.h"
#include "job/job_spec.h"

namespace muster::job {

struct ParseJobOptions {
  std::string file_name;    // for messages
  std::string working_dir;  // absolute; relative model_dir and data paths are resolved against it
  // Of the machine that submits the job, for ~ and $NAME in paths and `env`. May be null.
  base::Variables variables = nullptr;
  // Receives warnings, each as "file:line:column: text". May be null.
  std::vector<std::string>* warnings = nullptr;
  Overrides overrides = {};  // applied before the job is read
  // Receives the text of the file as changed by `overrides`; without any, the text itself. May be
  // null.
  std::string* effective = nullptr;
};

// Returns the job, or InvalidArgument with all mistakes, one per line, in the form
// "file:line:column: mistake; expected form (did you mean 'x'?)"; a mistake in an override has the
// option as its place, "--set train.steps: mistake". Safe for untrusted input: size,
// depth and the number of nodes and tasks are limited.
absl::StatusOr<JobSpec> ParseJob(absl::string_view text, const ParseJobOptions& options);

// As ParseJob(), for a TFJob returned by an API server. Messages contain the path of the field
// ("spec.runPolicy: …") instead of a position, because there is no text.
absl::StatusOr<JobSpec> ParseTfJobObject(const nlohmann::json& object,
                                         std::vector<std::string>* warnings = nullptr);

// Limits. docs/job-file.md lists them.
inline constexpr int kMaxReplicas = 4096;  // per role
inline constexpr int kMaxTasks = 10000;    // per job
inline constexpr int64_t kMaxJobFileBytes = 4 << 20;
// Total size of the pod templates of a TFJob, each counted once per replica: every pod stores a
// copy in etcd.
inline constexpr int64_t kMaxTemplateBytes = 256 << 20;

}  // namespace muster::job
