// Computes argv, environment and working directory of one task. The result is the same on every
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

namespace muster::job {

// The input from the platform, in addition to the job file.
struct LaunchContext {
  std::string job_id;
  std::string working_dir;         // absolute
  std::string trainer;             // path of muster-trainer, for roles without a command
  std::string python = "python3";  // for a TensorFlow server
  std::string tf_server;     // path of its program (job/tf_server.h); "": the text is an argument
  std::string train_config;  // path of the file that holds the job's train section
  std::string run_dir;  // private folder of the attempt, for files such as MUSTER_PROGRESS_FILE
  // Where the task writes its metrics (docs/job-file.md). Output reaches the user from everywhere.
  std::string metrics_file = "/dev/stdout";
  // Private folder for Unix sockets of the job's tasks; "" if they run on several machines.
  std::string socket_dir;
  std::string tls_dir;  // the job's certificates; "" if its tasks do not use TLS
  int attempt = 0;
  int restart_count = 0;
  int cpus = 1;  // of this task's host
  int tasks_on_host = 1;
  bool user_set_omp = false;  // OMP_NUM_THREADS is in the environment that the task inherits
  bool resumed = false;
  std::optional<int64_t> resume_step;
};

// Two launches of a task compare equal if the job is unchanged and both were built for the same
// attempt. Only `attempt`, `restart_count` and `run_dir` of the context differ between attempts.
// They affect only {attempt}, MUSTER_ATTEMPT, TORCHELASTIC_RESTART_COUNT, TORCHELASTIC_ERROR_FILE
// and MUSTER_PROGRESS_FILE.
struct TaskLaunch {
  std::vector<std::string> argv;           // empty: the entry point of the image
  std::map<std::string, std::string> env;  // in addition to the inherited environment
  std::string working_dir;                 // absolute
  bool operator==(const TaskLaunch&) const = default;
};

// Returns the launch of `task`, or InvalidArgument if the task is not in `cluster`. REQUIRES:
// `cluster` contains every task of the job, including the evaluator.
absl::StatusOr<TaskLaunch> BuildTaskLaunch(const JobSpec& spec, const cluster::ClusterSpec& cluster,
                                           const cluster::TaskId& task,
                                           const LaunchContext& context);

// Returns the argv as a shell line, or a description if the image decides.
std::string DescribeCommand(const RoleSpec& role, const TaskLaunch& launch);

// Returns the names of the placeholders that a command may use.
const std::vector<std::string>& CommandPlaceholders();

}  // namespace muster::job
