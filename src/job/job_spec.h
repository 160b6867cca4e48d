// The specification of a job, independent of the format of the job file. Plain data. Only ParseJob
// (job/format/parse.h) creates it from a user's text, so it is valid by construction.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cluster/task_id.h"
#include "job/host_spec.h"
#include "nlohmann/json.hpp"

namespace muster::job {

// The format of the job file. It determines details of TF_CONFIG and the assignment of ports.
enum class JobFormat { kNative, kTfJobV1, kTfJobV1Alpha1, kRenderedCluster };

// The condition under which an ended task is restarted. kExitCode: exit codes 1–127 are final, 128
// and above (including signals) are retried. See job/restart_policy.h.
enum class RestartPolicy { kNever, kOnFailure, kAlways, kExitCode };

// The tasks restarted after a failure: the failed task only, or every task of the job.
enum class RestartScope { kTask, kJob };

// The tasks whose success is the job's success. kChief: the chief or master, or worker:0 if there
// is none. kAllWorkers: all tasks except those of ps and evaluator, which serve the others.
enum class SuccessPolicy { kChief, kAllWorkers };

// The condition under which a task counts as up: its process runs, or it listens on its port.
enum class Readiness { kStarted, kListening };

// The action of the stall watchdog on a task without progress, after it has saved the stacks.
enum class StallAction { kRestart, kReport };

// The program of a role that serves instead of a command. It waits for sessions until it is
// stopped. kTensorFlow: a TensorFlow server (job/tf_server.h); kTrainer: the server of the built-in
// trainer.
enum class Server { kNone, kTensorFlow, kTrainer };

struct StallPolicy {
  absl::Duration timeout;
  StallAction action = StallAction::kRestart;
  bool operator==(const StallPolicy&) const = default;
};

struct Resources {
  std::optional<double> cpus;
  std::optional<int64_t> memory_bytes;
  std::optional<int> gpus;
  bool operator==(const Resources&) const = default;
};

struct RoleSpec {
  std::string name;  // as in the file: "chief" and "master" are kept apart
  int replicas = 1;
  // The argv with placeholders ({role}, {index}, …). A shell line is {"/bin/sh", "-c", line}.
  // Empty: `server`, else the entry point of the image (HasEntryPoint()), else the built-in
  // trainer.
  std::vector<std::string> command;
  Server server = Server::kNone;
  std::map<std::string, std::string> env;
  std::string working_dir;  // relative to Submission::working_dir; "" = that directory
  RestartPolicy restart = RestartPolicy::kExitCode;
  Readiness ready = Readiness::kStarted;
  std::optional<int> port;             // of task 0; task i on the same host has port + i
  std::vector<std::string> addresses;  // host:port of each task, if fixed by the user; else empty
  Resources resources;
  std::string image;          // for platforms that run containers
  nlohmann::json pod;         // the pod template of a manifest, unchanged; else null
  nlohmann::json kubernetes;  // of a native file: see job/format/kubernetes_section.h; null = none
  bool operator==(const RoleSpec&) const = default;
};

struct Policies {
  int max_restarts = 3;  // per task
  RestartScope restart_scope = RestartScope::kTask;
  absl::Duration backoff = absl::Seconds(1);  // before the first restart; doubles
  absl::Duration max_backoff = absl::Minutes(1);
  absl::Duration start_timeout = absl::Minutes(1);
  std::optional<absl::Duration> deadline;
  absl::Duration stop_grace = absl::Seconds(10);    // between TERM and KILL
  absl::Duration finish_grace = absl::Seconds(30);  // for the other tasks to end after success
  // Time after which the tasks of an unreachable host count as failed.
  absl::Duration host_timeout = absl::Minutes(1);
  SuccessPolicy success = SuccessPolicy::kChief;
  std::optional<cluster::TaskId>
      chief;  // the task that decides success, if the file names one; see ChiefTask
  std::optional<StallPolicy> stall;
  int64_t log_rotate_bytes = int64_t{256} << 20;
  int log_keep = 8;  // rotated files kept per task
  bool operator==(const Policies&) const = default;
};

struct JobSpec {
  JobFormat format = JobFormat::kNative;
  std::string name;
  std::string model_dir;  // absolute path or URL; "" = none
  std::map<std::string, std::string> env;
  std::vector<RoleSpec> roles;  // in the file's order; names are unique
  nlohmann::json train;         // the built-in trainer's section, validated; null = none
  nlohmann::json notebook;      // the notebook's section; null = none
  std::string kubernetes_namespace;
  // Settings that apply to Kubernetes only; null = none. For a manifest, all keys that no field
  // above represents (labels, runPolicy, …), under their own names. For a native file, see
  // job/format/kubernetes_section.h.
  nlohmann::json kubernetes;
  std::vector<HostSpec> hosts;   // hosts in the file, for a job over SSH
  bool dynamic_workers = false;  // TF_CONFIG in the sparse form
  Policies policies;
  bool operator==(const JobSpec&) const = default;

  const RoleSpec* FindRole(absl::string_view role) const;
  // Returns all tasks, with the roles in the file's order.
  std::vector<cluster::TaskId> Tasks() const;
};

// Returns true for the roles whose task 0 leads: "chief" and "master".
bool IsChiefRole(absl::string_view role);
// Returns true for the roles that serve others and never decide success: "ps" and "evaluator".
bool IsServiceRole(absl::string_view role);
// Returns true for such a role of a job that has other tasks. Servers alone decide for themselves.
bool ServesOthers(const JobSpec& spec, absl::string_view role);
// Returns true if the role runs the entry point of its image, which Muster does not know: its
// manifest has no command. An image of the built-in trainer has a known one.
bool HasEntryPoint(const RoleSpec& role);
// Returns true if a task of the job runs the built-in trainer.
bool NeedsTrainer(const JobSpec& spec);
// Returns true if a task of the job runs a TensorFlow server of Muster's (job/tf_server.h).
bool NeedsTfServer(const JobSpec& spec);
// Returns the task whose exit decides under SuccessPolicy::kChief: the one that the file names,
// else the chief or the first worker; nullopt if the job has neither.
std::optional<cluster::TaskId> ChiefTask(const JobSpec& spec);

// Convert a spec to JSON and back without loss, for submission.json. JobSpecFromJson() returns
// InvalidArgument for a document that JobSpecToJson() did not write.
nlohmann::json JobSpecToJson(const JobSpec& spec);
absl::StatusOr<JobSpec> JobSpecFromJson(const nlohmann::json& json);

}  // namespace muster::job
