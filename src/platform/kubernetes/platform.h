// Runs jobs as TFJobs of a Kubernetes cluster, under its operator.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "job/job_tls.h"
#include "k8s/client.h"
#include "manifest/pods.h"
#include "platform/capabilities.h"
#include "platform/kubernetes/follower.h"
#include "platform/kubernetes/observe.h"
#include "platform/kubernetes/target.h"
#include "platform/kubernetes/work_files.h"
#include "platform/registration.h"

namespace muster::kubernetes {

// The cluster holds the state of a job; Observe() brings the records up to date. Output is copied
// to this machine whenever it is viewed and is kept after the pods are gone.
class KubernetesPlatform final : public platform::Platform,
                                 public platform::StateSource,
                                 public platform::JobCatalog,
                                 public platform::JobUpdater,
                                 public platform::FileSelection,
                                 public platform::NotebookHost,
                                 public platform::ImageUser,
                                 public platform::RenderedJobs,
                                 public platform::MachineInventory {
 public:
  KubernetesPlatform(platform::Traits traits, platform::Environment environment);

  std::vector<platform::Limit> Unsupported(const job::Submission& submission) const override;
  absl::Status Prepare(job::Submission& submission) override;
  absl::StatusOr<cluster::ClusterSpec> Addresses(const job::Submission& submission) const override;
  absl::StatusOr<job::TaskLaunch> LaunchOf(const job::Submission& submission,
                                           const cluster::ClusterSpec& cluster,
                                           const cluster::TaskId& task) const override;
  absl::Status Submit(const job::Submission& submission, const job::JobRecord& record) override;
  absl::StatusOr<std::optional<job::StateChange>> Observe(
      const job::JobRecord& job, const std::vector<job::TaskRecord>& tasks) override;
  absl::StatusOr<std::vector<job::JobRecord>> List(const job::Target& where) override;
  absl::StatusOr<job::Submission> Import(const std::string& id, const job::Target& where) override;
  absl::Status Stop(const job::JobRecord& job, bool immediately) override;
  absl::StatusOr<supervise::UpdatePlan> PlanUpdate(const job::JobRecord& job,
                                                   const std::vector<job::TaskRecord>& tasks,
                                                   const job::Submission& next) override;
  absl::Status Update(const job::JobRecord& job, const job::Submission& next) override;
  platform::WorkDirUse WorkDirUseOf(const job::Submission& submission) const override;
  absl::StatusOr<std::string> DescribeFiles(const job::Submission& submission) const override;
  absl::StatusOr<std::unique_ptr<platform::JobWatch>> Watch(const job::JobRecord& job) override;
  absl::StatusOr<std::unique_ptr<supervise::LogStream>> Logs(
      const job::JobRecord& job, const std::vector<cluster::TaskId>& tasks) override;
  absl::StatusOr<platform::NotebookAccess> FindNotebook(const job::Submission& submission) override;
  std::vector<platform::Image> RequiredImages(const job::Submission& submission) const override;
  std::optional<cluster::ClusterSpec> RenderedAddresses(
      const job::Submission& submission) const override;
  // The machines are nodes, which not every user may read.
  std::vector<platform::Machine> Machines(const job::JobRecord& job,
                                          const std::vector<job::TaskRecord>& tasks) override;

 private:
  // A client and the time of its last failure to reach the cluster.
  struct Connection {
    std::unique_ptr<k8s::Client> client;
    absl::Time failed = absl::InfinitePast();
  };

  // Returns `target` with defaults for all fields that the user left empty.
  absl::StatusOr<job::KubernetesTarget> Resolve(job::KubernetesTarget target,
                                                const std::string& ns);
  void Copy(k8s::Client& client, const FollowOptions& options, const std::vector<Json>& pods,
            bool ended) const;
  void Warn(const absl::Status& status) const;
  absl::StatusOr<Connection*> ConnectionFor(const job::KubernetesTarget& target);
  absl::StatusOr<k8s::Client*> ClientFor(const job::KubernetesTarget& target);
  // Returns the TFJob and its pods, without objects of another job of the same name.
  static absl::StatusOr<Observation> ReadObjects(k8s::Client& client,
                                                 const job::Submission& submission);
  std::string TrainerImageOf(const job::KubernetesTarget& target) const;
  // Returns the objects of the job. `tls` and `file_parts` are for objects that do not exist yet.
  absl::StatusOr<std::vector<manifest::Object>> Render(
      const job::Submission& submission, std::optional<job::JobTls> tls = std::nullopt,
      std::vector<std::string> file_parts = {}) const;
  // Packs the files that the job's pods get. `notice`: reports files that are left out.
  absl::StatusOr<PackedFiles> Pack(const job::Submission& submission, bool notice) const;
  // As above, for a job that is about to start or change: also stores them in the submission's
  // target.
  absl::StatusOr<std::vector<std::string>> PackForSending(job::Submission& submission) const;
  // Returns the job's follower, shared by all watches on it.
  absl::StatusOr<std::shared_ptr<Follower>> Follow(const job::JobRecord& job);

  const platform::Environment environment_;
  std::map<std::string, Connection> connections_;             // by kubeconfig and context
  std::map<std::string, std::weak_ptr<Follower>> followers_;  // by job id
};

}  // namespace muster::kubernetes
