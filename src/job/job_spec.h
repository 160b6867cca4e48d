// What a job is, once read: one structure for every form of job file. Plain data, valid by
// construction: ParseJob (job/parse.h) is the only thing that makes one from a user's text.
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

namespace muster {

// Which form of file the job came from. It decides details of TF_CONFIG and where ports come from.
enum class JobFormat { kNative, kTfJobV1, kTfJobV1Alpha1, kRenderedCluster };

// When a task that ended is started again. kExitCode: 1–127 is final, 128 and above (signals too)
// is retried.
enum class RestartPolicy { kNever, kOnFailure, kAlways, kExitCode };

// What is started again with a failed task: it alone, or every task of the job.
enum class RestartScope { kTask, kJob };

// kChief: the chief (or master) succeeded; without one, worker:0. kAllWorkers: every task succeeded
// but those of ps and evaluator, which serve the others.
enum class SuccessPolicy { kChief, kAllWorkers };

// When a task counts as up: its process runs, or it listens on its port.
enum class Readiness { kStarted, kListening };

// What the stall watchdog does with a task that makes no progress, after saving its stacks.
enum class StallAction { kRestart, kReport };

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
  std::string name;  // as the user wrote it: "chief" and "master" both stay
  int replicas = 1;
  // Placeholders ({role}, {index}, …) not yet filled in. A shell line is {"/bin/sh", "-c", line}.
  // Empty: the built-in trainer.
  std::vector<std::string> command;
  std::map<std::string, std::string> env;
  std::string working_dir;  // relative to where `muster run` was called; "" = there
  RestartPolicy restart = RestartPolicy::kExitCode;
  Readiness ready = Readiness::kStarted;
  std::optional<int> port;  // of task 0; on one host task i has port + i
  std::vector<std::string>
      addresses;  // host:port of each task, when the user fixed them; else empty
  Resources resources;
  std::string image;          // for platforms that run containers
  nlohmann::json pod;         // a manifest's pod template, kept whole for Kubernetes; else null
  nlohmann::json kubernetes;  // of a native file: see job/kubernetes_section.h; null = none
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
  // How long a host may be out of reach before its tasks count as failed.
  absl::Duration host_timeout = absl::Minutes(1);
  SuccessPolicy success = SuccessPolicy::kChief;
  std::optional<TaskId> chief;  // the task that decides, where the file names one: see ChiefTask
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
  // What the file tells Kubernetes alone; null = none. Of a manifest all that no field above holds
  // (labels, runPolicy, …), under its own names; of a native file see job/kubernetes_section.h.
  nlohmann::json kubernetes;
  std::vector<HostSpec> hosts;   // that the file names, for a job over SSH
  bool dynamic_workers = false;  // TF_CONFIG in the sparse form
  Policies policies;
  bool operator==(const JobSpec&) const = default;

  const RoleSpec* FindRole(absl::string_view role) const;
  // Every task, roles in order.
  std::vector<TaskId> Tasks() const;
};

// True for the roles whose task 0 leads: "chief" and "master".
bool IsChiefRole(absl::string_view role);
// True for the roles that serve others and never decide a job's success: "ps" and "evaluator".
bool IsServiceRole(absl::string_view role);
// The task whose exit decides under SuccessPolicy::kChief: that which the file names, else the
// chief or the first worker; nullopt when the job has neither.
std::optional<TaskId> ChiefTask(const JobSpec& spec);

// The whole of a spec as JSON and back: what a supervisor reads at its start. FromJson fails only
// on a document that ToJson did not write.
nlohmann::json JobSpecToJson(const JobSpec& spec);
absl::StatusOr<JobSpec> JobSpecFromJson(const nlohmann::json& json);

}  // namespace muster
