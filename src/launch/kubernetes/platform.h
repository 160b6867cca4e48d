// Jobs as TFJobs of a Kubernetes cluster, which its operator runs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "k8s/client.h"
#include "launch/job_tls.h"
#include "launch/kubernetes/follower.h"
#include "launch/kubernetes/observe.h"
#include "launch/kubernetes/place.h"
#include "launch/kubernetes/pods.h"
#include "launch/platform.h"

namespace muster::kubernetes {

struct PlatformOptions {
  std::string trainer_image;  // unless a job's place names another
  std::string notebook_image;
  std::function<void(const std::string&)> warn;  // is told what the server warns of
};

// A job's state is the cluster's: Observe() brings the records up to date with it. Its output is
// copied to this machine whenever somebody looks, and stays when the pods are gone.
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
  absl::StatusOr<std::vector<JobRecord>> List(const nlohmann::json& place) override;
  absl::StatusOr<Submission> Import(const std::string& id, const nlohmann::json& place) override;
  absl::Status Stop(const JobRecord& job, bool at_once) override;
  absl::StatusOr<UpdatePlan> PlanUpdate(const JobRecord& job, const std::vector<TaskRecord>& tasks,
                                        const Submission& next) override;
  absl::Status Update(const JobRecord& job, const Submission& next) override;
  absl::StatusOr<std::unique_ptr<JobWatch>> Watch(const JobRecord& job) override;
  absl::StatusOr<std::unique_ptr<LogStream>> Logs(const JobRecord& job,
                                                  const std::vector<TaskId>& tasks) override;

 private:
  // How a cluster is reached, and that it could not be a moment ago.
  struct Connection {
    std::unique_ptr<k8s::Client> client;
    absl::Time failed = absl::InfinitePast();
  };

  // With everything that the user left open.
  absl::StatusOr<Place> Resolve(Place place, const std::string& name_space);
  // An object that has been, or may have been, made.
  struct Made {
    const k8s::ResourceKind* kind;
    k8s::ObjectKey key;
  };

  absl::StatusOr<Json> ApplyAll(k8s::Client& client, const std::vector<Object>& objects,
                                std::vector<Made>* made);
  void Copy(k8s::Client& client, const FollowOptions& options, const std::vector<Json>& pods,
            bool ended) const;
  void Warn(const absl::Status& status) const;
  absl::StatusOr<Connection*> ConnectionFor(const Place& place);
  absl::StatusOr<k8s::Client*> ClientFor(const Place& place);
  static absl::StatusOr<Sight> Look(k8s::Client& client, const Submission& submission);
  absl::StatusOr<std::vector<Object>> Render(const Submission& submission,
                                             std::optional<JobTls> tls = std::nullopt) const;
  absl::StatusOr<std::shared_ptr<Follower>> Follow(const JobRecord& job);

  const PlatformOptions options_;
  std::map<std::string, Connection> connections_;             // by kubeconfig and context
  std::map<std::string, std::weak_ptr<Follower>> followers_;  // by job
};

}  // namespace muster::kubernetes
