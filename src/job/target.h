// Where a job runs: one struct per platform. Each holds what the user asked for and, in a member of
// its own, what became of it there.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "cluster/task_id.h"
#include "job/host_spec.h"
#include "nlohmann/json.hpp"

namespace muster {

struct LocalTarget {
  bool operator==(const LocalTarget&) const = default;
};

// A host that holds tasks of a job.
struct AssignedHost {
  HostSpec spec;
  std::string address;  // that other hosts reach it by
  // Set when the host has been provisioned.
  std::string folder;   // of the job there
  std::string trainer;  // the program there; "" = none is needed
  int cpus = 1;

  bool operator==(const AssignedHost&) const = default;
};

struct HostAssignment {
  std::vector<AssignedHost> hosts;       // in the user's order
  std::map<TaskId, std::string> holder;  // a task to the name of its host
  std::string agent;                     // the path of the agent's program on every host
  bool tls = false;                      // tasks that talk to each other have certificates

  // REQUIRES: every task of the job has a holder.
  const AssignedHost& HostOf(const TaskId& task) const;
  bool operator==(const HostAssignment&) const = default;
};

struct SshTarget {
  std::string hosts;  // as given to --hosts; "" = those of the job file
  HostAssignment assignment;

  bool operator==(const SshTarget&) const = default;
};

// The TFJob of a job.
struct KubernetesObject {
  std::string name;  // "" = the submission's id; only the job of another client has another name
  std::string uid;   // tells it from a later TFJob of that name; "" = not known yet

  bool operator==(const KubernetesObject&) const = default;
};

struct KubernetesTarget {
  std::string kubeconfig;  // KUBECONFIG when the job was submitted; "" = the user's own
  std::string context;     // "" = the current one, or the cluster of this pod
  std::string ns;          // "" = the job's, else the context's
  std::string trainer_image;
  KubernetesObject object;

  bool operator==(const KubernetesTarget&) const = default;
};

// What became of a job on Vertex AI.
struct VertexRun {
  std::vector<std::string> packages;  // of an earlier run whose files are used again
  std::string folder;                 // gs://… that checkpoints go to: the first run's
  std::string custom_job;             // its resource name; "" = none yet
  // A nonce for each submission of this id from here, so that nobody takes another's job or folder
  // for its own. The last one is this submission's; those before it never became jobs.
  std::vector<std::string> tries;
  std::string run_sha256;  // of job.json in the run's folder; "" = not written yet
  std::string tls_sha256;  // of the run's certificates; "" = it has none
  int64_t asked_us = 0;    // when Vertex AI was asked to create the job; 0 = not yet

  // "" = another client has submitted the job.
  std::string nonce() const { return tries.empty() ? "" : tries.back(); }
  bool operator==(const VertexRun&) const = default;
};

struct VertexTarget {
  std::string project;
  std::string region;
  std::string bucket;
  std::string tier;
  // Machine types as the user gave them; "" = the tier's, or its default.
  std::string master_type, worker_type, parameter_server_type;
  std::optional<int> workers, parameter_servers;  // instead of the file's replicas
  std::string image;                              // of every role that names none of its own
  std::string dataset;                            // instead of the path in the file
  bool rebuild = false;                           // send again what the bucket has already
  VertexRun run;

  // gs://BUCKET/muster_ID, the folder of what a run needs.
  std::string FolderOf(const std::string& id) const;
  bool operator==(const VertexTarget&) const = default;
};

using Target = std::variant<LocalTarget, SshTarget, KubernetesTarget, VertexTarget>;

// The name of the target's platform: "local", "ssh", "kubernetes" or "vertex".
absl::string_view PlatformOf(const Target& target);

// Whether another client has submitted the job, and it was merely looked at from here.
bool IsForeign(const Target& target);

nlohmann::json TargetToJson(const Target& target);
// Fields that are missing or of another type are left at their defaults.
Target TargetFromJson(const nlohmann::json& json);

// Returns `next` with every field that it leaves open taken from `previous`.
// REQUIRES: both are of the same platform.
Target InheritTarget(const Target& previous, const Target& next);

}  // namespace muster
