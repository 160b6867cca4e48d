// The platform on which a job runs, one struct per platform. Each has the user's settings and, in a
// separate member, the state of the job on the platform.
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

namespace muster::job {

struct LocalTarget {
  bool operator==(const LocalTarget&) const = default;
};

// A host that runs tasks of a job.
struct AssignedHost {
  HostSpec spec;
  std::string address;  // at which other hosts reach it
  // Set when the host has been provisioned.
  std::string folder;   // of the job on the host
  std::string trainer;  // path of the program on the host; "" = not needed
  int cpus = 1;

  bool operator==(const AssignedHost&) const = default;
};

struct HostAssignment {
  std::vector<AssignedHost> hosts;                // in the user's order
  std::map<cluster::TaskId, std::string> holder;  // from task to host name
  std::string agent;                              // path of the agent program on every host
  bool tls = false;                               // tasks authenticate each other with certificates

  // REQUIRES: every task of the job has a holder.
  const AssignedHost& HostOf(const cluster::TaskId& task) const;
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
  std::string uid;   // distinguishes it from a later TFJob of that name; "" = unknown

  bool operator==(const KubernetesObject&) const = default;
};

// The files of the working directory that pods of a job get, as a compressed archive in parts.
struct KubernetesFiles {
  std::string digest;              // of the archive; "" = no files
  int parts = 0;                   // ConfigMaps
  std::vector<std::string> roles;  // whose pods get the files

  bool operator==(const KubernetesFiles&) const = default;
};

struct KubernetesTarget {
  std::string kubeconfig;        // KUBECONFIG when the job was submitted; "" = the user's own
  std::string context;           // "" = the current one, or the cluster of this pod
  std::string ns;                // "" = the job's, else the context's
  std::string trainer_image;     // "" = that of Muster's version, in `image_repository`
  std::string image_repository;  // of Muster's images, which are pushed there; "" = none
  KubernetesObject object;
  KubernetesFiles files;

  bool operator==(const KubernetesTarget&) const = default;
};

// The state of a job on Vertex AI.
struct VertexRun {
  std::vector<std::string> packages;  // of an earlier run, whose files are reused
  std::string folder;                 // gs://… for checkpoints: that of the first run
  std::string custom_job;             // its resource name; "" = none yet
  // The nonces of all submissions of this id from this machine. They distinguish the job and folder
  // of one submission from those of another. The last one belongs to this submission; the
  // submissions before it did not result in jobs.
  std::vector<std::string> tries;
  std::string run_sha256;    // of job.json in the run's folder; "" = not written yet
  std::string tls_sha256;    // of the run's certificates; "" = it has none
  std::string agent_sha256;  // of muster-agent in the bucket; "" = no task needs it
  int64_t asked_us = 0;      // time of the request to create the job; 0 = not sent yet

  // Returns the nonce of this submission, or "" if another client submitted the job.
  std::string nonce() const { return tries.empty() ? "" : tries.back(); }
  bool operator==(const VertexRun&) const = default;
};

struct VertexTarget {
  std::string project;
  std::string region;
  std::string bucket;
  std::string folder_prefix;  // of the run's folder; "" = kDefaultFolderPrefix
  std::string tier;
  // Machine types as the user gave them; "" = the tier's, or its default.
  std::string master_type, worker_type, parameter_server_type;
  std::optional<int> workers, parameter_servers;  // override the replicas in the file
  std::string image;                              // for roles without an image
  std::string image_repository;                   // of Muster's images, which are pushed there
  std::string dataset;                            // overrides the path in the file
  bool rebuild = false;                           // upload packages even if the bucket has them
  VertexRun run;

  static constexpr char kDefaultFolderPrefix[] = "muster_";
  // Returns the folder of the run: gs://BUCKET/muster_ID, or with another prefix.
  std::string FolderOf(const std::string& id) const;
  bool operator==(const VertexTarget&) const = default;
};

using Target = std::variant<LocalTarget, SshTarget, KubernetesTarget, VertexTarget>;

// Returns the name of the target's platform: "local", "ssh", "kubernetes" or "vertex".
absl::string_view PlatformOf(const Target& target);

// Returns true if another client submitted the job and this machine only observes it.
bool IsForeign(const Target& target);

// Returns the target as the user requested it, without the state of the job there.
Target RequestOf(const Target& target);

// Returns the target for display: "on this machine", "in namespace 'ml' of context 'prod'".
std::string DescribeTarget(const Target& target);

nlohmann::json TargetToJson(const Target& target);
// Fields that are absent or of another type keep their defaults.
Target TargetFromJson(const nlohmann::json& json);
// Reads the member "place" of a submission that was written before targets had the name of their
// platform; null = a job on this machine.
Target TargetFromPlace(const nlohmann::json& place);

// Returns `next`, with every field that is not set taken from `previous`. An image and a repository
// of images are alternatives, so one of them in `next` replaces both.
// REQUIRES: both are of the same platform.
Target InheritTarget(const Target& previous, const Target& next);

}  // namespace muster::job
