// Runs jobs as TFJobs of a Kubernetes cluster, under its operator.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "job/job_tls.h"
#include "k8s/client.h"
#include "manifest/pods.h"
#include "platform/kubernetes/follower.h"
#include "platform/kubernetes/observe.h"
#include "platform/kubernetes/target.h"
#include "platform/platform.h"

namespace muster::kubernetes {

struct PlatformOptions {
  std::string trainer_image;  // used unless a job's target names another
  std::string notebook_image;
  std::function<void(const std::string&)> warn;  // receives warnings of the API server
};

// The cluster holds the state of a job; Observe() brings the records up to date. Output is copied
// to this machine whenever it is viewed and is kept after the pods are gone.
class KubernetesPlatform final : public Platform {
 public:
  explicit KubernetesPlatform(PlatformOptions options) : options_(std::move(options)) {}

  absl::string_view name() const override { return "kubernetes"; }
  std::vector<Limit> Unsupported(const Submission& submission) const override;
  absl::Status Prepare(Submission& submission) override;
  std::string Describe(const Submission& submission) const override;
  absl::StatusOr<ClusterSpec> Addresses(const Submission& submission) const override;
  absl::StatusOr<TaskLaunch> LaunchOf(const Submission& submission, const ClusterSpec& cluster,
                                      const TaskId& task) const override;
  absl::Status Submit(const Submission& submission, const JobRecord& record) override;
  Liveness Check(const JobRecord& job) override;
  bool is_observed() const override { return true; }
  absl::StatusOr<std::optional<StateChange>> Observe(const JobRecord& job,
                                                     const std::vector<TaskRecord>& tasks) override;
  absl::StatusOr<std::vector<JobRecord>> List(const Target& where) override;
  absl::StatusOr<Submission> Import(const std::string& id, const Target& where) override;
  absl::Status Stop(const JobRecord& job, bool immediately) override;
  absl::StatusOr<UpdatePlan> PlanUpdate(const JobRecord& job, const std::vector<TaskRecord>& tasks,
                                        const Submission& next) override;
  absl::Status Update(const JobRecord& job, const Submission& next) override;
  absl::StatusOr<std::unique_ptr<JobWatch>> Watch(const JobRecord& job) override;
  absl::StatusOr<std::unique_ptr<LogStream>> Logs(const JobRecord& job,
                                                  const std::vector<TaskId>& tasks) override;

 private:
  // A client and the time of its last failure to reach the cluster.
  struct Connection {
    std::unique_ptr<k8s::Client> client;
    absl::Time failed = absl::InfinitePast();
  };

  // Returns `target` with defaults for all fields that the user left empty.
  absl::StatusOr<KubernetesTarget> Resolve(KubernetesTarget target, const std::string& ns);
  // An object that exists or, if the request was not answered, may exist.
  struct Made {
    const k8s::ResourceKind* kind;
    k8s::ObjectKey key;
  };

  absl::StatusOr<Json> ApplyAll(k8s::Client& client, const std::vector<manifest::Object>& objects,
                                std::vector<Made>* made);
  void Copy(k8s::Client& client, const FollowOptions& options, const std::vector<Json>& pods,
            bool ended) const;
  void Warn(const absl::Status& status) const;
  absl::StatusOr<Connection*> ConnectionFor(const KubernetesTarget& target);
  absl::StatusOr<k8s::Client*> ClientFor(const KubernetesTarget& target);
  // Returns the TFJob and its pods, without objects of another job of the same name.
  static absl::StatusOr<Sight> Look(k8s::Client& client, const Submission& submission);
  absl::StatusOr<std::vector<manifest::Object>> Render(
      const Submission& submission, std::optional<JobTls> tls = std::nullopt) const;
  // Returns the job's follower, shared by all watches on it.
  absl::StatusOr<std::shared_ptr<Follower>> Follow(const JobRecord& job);

  const PlatformOptions options_;
  std::map<std::string, Connection> connections_;             // by kubeconfig and context
  std::map<std::string, std::weak_ptr<Follower>> followers_;  // by job id
};

}  // namespace muster::kubernetes
