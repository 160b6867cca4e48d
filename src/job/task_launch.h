// From a job to one process of it: argv, environment and working directory, the same on every
// platform. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/cluster_spec.h"
#include "job/job_spec.h"

namespace muster {

// What the platform knows and the job file does not.
struct LaunchContext {
  std::string job_id;
  std::string working_dir;   // absolute
  std::string trainer;       // path of muster-trainer, for roles without a command
  std::string train_config;  // path of the file that holds the job's train section
  std::string run_dir;       // private folder of the attempt, for MUSTER_PROGRESS_FILE and the like
  // Private folder for Unix sockets of the job's tasks; "" when they are not all on one machine.
  std::string socket_dir;
  std::string tls_dir;  // the job's certificates; "" when its tasks are not asked for any
  int attempt = 0;
  int restart_count = 0;
  int cpus = 1;  // of this task's host
  int tasks_on_host = 1;
  bool user_set_omp = false;  // OMP_NUM_THREADS is in the environment that the task inherits
  bool resumed = false;
  std::optional<int64_t> resume_step;
};

// Two launches of a task compare equal when nothing about the job changed between them and both
// were built for the same attempt: only `attempt`, `restart_count` and `run_dir` of the context
// differ from one attempt to the next, and show in {attempt}, MUSTER_ATTEMPT,
// TORCHELASTIC_RESTART_COUNT, TORCHELASTIC_ERROR_FILE and MUSTER_PROGRESS_FILE alone.
struct TaskLaunch {
  std::vector<std::string> argv;
  std::map<std::string, std::string> env;  // in addition to the inherited environment
  std::string working_dir;                 // absolute
  bool operator==(const TaskLaunch&) const = default;
};

// `cluster` holds every task of the job, the evaluator too. InvalidArgument for a task that is not
// in it.
absl::StatusOr<TaskLaunch> BuildTaskLaunch(const JobSpec& spec, const ClusterSpec& cluster,
                                           const TaskId& task, const LaunchContext& context);

// The placeholders that a command may use, for messages and for `muster help`.
const std::vector<std::string>& CommandPlaceholders();

}  // namespace muster
