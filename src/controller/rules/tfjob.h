// A TFJob of the API server, and the pods and services that belong to it. v1alpha1 is an older
// format of the same job; this file holds all differences between the two.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/call_once.h"
#include "absl/status/statusor.h"
#include "cluster/cluster_spec.h"
#include "controller/rules/conditions.h"
#include "job/job_spec.h"
#include "manifest/names.h"
#include "manifest/tensorboard.h"

namespace muster::controller {

inline constexpr k8s::ResourceKind kTfJobsV1Alpha1{"tensorflow.org", "v1alpha1", "tfjobs", "TfJob"};
// Returns the kind of a job object: manifest::kTfJobs or kTfJobsV1Alpha1.
const k8s::ResourceKind& JobKindOf(const Json& job);

inline constexpr char kLabelPrefix[] = "training.kubeflow.org/";
using manifest::kTensorboard;
// Annotation of a pod: the digest of the template that it was created from.
inline constexpr char kTemplateHash[] = "muster/template-hash";
// Annotation of a pod: how many times the whole job had restarted when the pod was created. Absent:
// never.
inline constexpr char kIncarnation[] = "muster/life";
// How pods with a changed template are replaced: all at the same time, one after the other, or not
// at all.
enum class UpdatePolicy { kRecreate, kRolling, kNever };

// Returns the label selector for all objects that the operator has created.
std::string OwnedSelector();
// Returns the JSON object at `path`, or an empty one.
const Json& ObjectAt(const Json& object, absl::string_view path);
// Returns the kind of the job that an object belongs to by its labels, or null.
const k8s::ResourceKind* OwnerKindOf(const Json& object);

// Returns a copy of the status of a job, or {}. Other clients may have written it, so members that
// the operator reads are dropped if they do not have the types that the operator writes.
Json StatusOf(const Json& object);

// The scheduler that starts all pods of a job or none.
enum class GangScheduler { kNone, kVolcano, kSchedulerPlugins };

struct TfJobOptions {
  std::string domain;  // of the cluster, for the addresses of tasks; "": relative names
  std::string trainer_image;
  std::string tensorboard_image;  // for jobs without an image
  GangScheduler gang = GangScheduler::kNone;
  std::string gang_scheduler_name;  // schedulerName of pods; "": the scheduler's default name
  // Time after the deletion deadline when a pod whose node does not respond is deleted immediately.
  absl::Duration lost_after = absl::Minutes(1);
};

// Thread-safe.
class TfJob {
 public:
  // Parses a job. Returns InvalidArgument with all mistakes if it is invalid. `warnings` receives
  // settings that are valid but probably not intended.
  static absl::StatusOr<job::JobSpec> ReadSpec(const Json& object,
                                               std::vector<std::string>* warnings = nullptr);

  // `object` and `options` outlive this. REQUIRES: `spec` was parsed from `object`.
  TfJob(const Json& object, std::shared_ptr<const job::JobSpec> spec, const TfJobOptions& options)
      : object_(&object), spec_(std::move(spec)), options_(&options) {}

  const Json& object() const { return *object_; }
  const job::JobSpec& spec() const { return *spec_; }
  const TfJobOptions& options() const { return *options_; }
  bool is_v1alpha1() const { return &JobKindOf(*object_) == &kTfJobsV1Alpha1; }
  std::string name() const { return k8s::NameOf(*object_); }
  std::string kubernetes_namespace() const { return k8s::KeyOf(*object_).ns; }
  std::string uid() const { return k8s::UidOf(*object_); }
  bool suspended() const;
  std::string clean_pod_policy() const;  // None, Running or All
  std::optional<absl::Duration> ttl() const;
  // Limit of the failures of all tasks together; nullopt: none.
  std::optional<int> backoff_limit() const;
  // Limit of the failures of each task, or of the whole job with restart scope `job`. Only native
  // jobs have one.
  std::optional<int> max_restarts() const;
  // Time that tasks of a succeeded job have to exit by themselves. Zero unless the job is native.
  absl::Duration finish_grace() const;
  absl::Duration lost_after() const { return options_->lost_after; }

  // Returns the job's roles in the order Chief, Master, PS, Worker, Evaluator.
  std::vector<const job::RoleSpec*> roles() const;
  UpdatePolicy update_policy() const;
  // Returns roles whose pods are created only when those of the earlier ones run.
  std::vector<std::string> start_order() const;
  // Returns the TensorBoard section, or null.
  const Json* tensorboard() const;

  // Returns the name of the pod and the service of a task. {kTensorboard, 0} names TensorBoard.
  std::string NameOf(const cluster::TaskId& task) const;
  std::string GroupName() const;  // of the PodGroup
  Json Labels() const;            // of all objects of the job
  Json OwnerReference() const;
  absl::StatusOr<Json> PodOf(const cluster::TaskId& task) const;
  // Returns OK if a pod of each role can be built.
  absl::Status CheckPods() const;
  Json ServiceOf(const cluster::TaskId& task) const;
  // Returns the ConfigMap with the program of a default PS. REQUIRES: manifest::MountsTfServer().
  Json TfServerConfig() const;
  // Returns a digest of the role's template. It does not depend on the number of replicas.
  std::string TemplateHash(const job::RoleSpec& role) const;

 private:
  std::string RuntimeId() const;
  // Returns the addresses of all tasks, which are computed once for all pods.
  const cluster::ClusterSpec& Cluster() const;
  cluster::ClusterSpec Addresses() const;
  // Returns the labels that select the objects of a task.
  Json LabelsOf(const cluster::TaskId& task) const;
  Json MetadataOf(const cluster::TaskId& task) const;
  Json TensorboardPod() const;
  Json TensorboardService() const;

  const Json* object_;
  struct LazyCluster {
    absl::once_flag once;
    cluster::ClusterSpec addresses;
  };

  std::shared_ptr<const job::JobSpec> spec_;
  const TfJobOptions* options_;
  std::shared_ptr<LazyCluster> cluster_ = std::make_shared<LazyCluster>();
};

}  // namespace muster::controller
