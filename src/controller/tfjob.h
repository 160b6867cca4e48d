// A TFJob as the API server has it, and the pods and services that it stands for. Its first form,
// v1alpha1, is the same job spelled otherwise; what differs between the two is said here.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/call_once.h"
#include "absl/status/statusor.h"
#include "cluster/cluster_spec.h"
#include "controller/conditions.h"
#include "job/job_spec.h"

namespace muster::controller {

inline constexpr k8s::ResourceKind kTfJobs{"kubeflow.org", "v1", "tfjobs", "TFJob"};
inline constexpr k8s::ResourceKind kOldTfJobs{"tensorflow.org", "v1alpha1", "tfjobs", "TfJob"};
// The one of both that an object is.
const k8s::ResourceKind& JobKindOf(const Json& job);

inline constexpr char kLabelPrefix[] = "training.kubeflow.org/";
// The replica type of what shows a job's logs, beside its roles.
inline constexpr char kTensorboard[] = "tensorboard";
// Of a pod: the digest of the template that it was made from.
inline constexpr char kTemplateHash[] = "muster/template-hash";
// Of a pod: how many times all of the job had begun anew when it was made; absent: never.
inline constexpr char kLife[] = "muster/life";
// What happens to pods whose template has changed: all are made anew at once, one after the other,
// or none.
enum class UpdatePolicy { kRecreate, kRolling, kNever };

// Selects all that the operator has made.
std::string OwnedSelector();
// The object there; an empty one when there is none.
const Json& ObjectAt(const Json& object, absl::string_view path);
// The kind of the job that an object belongs to, by its labels; null when it belongs to none.
const k8s::ResourceKind* OwnerKindOf(const Json& object);

// The status that an object has, to be changed; {} when it has none. Anybody with the right to may
// have written it: members that the operator reads and that are not as it writes them are left out.
Json StatusOf(const Json& object);

// Who starts all pods of a job or none.
enum class GangScheduler { kNone, kVolcano, kSchedulerPlugins };

struct TfJobOptions {
  std::string domain;  // of the cluster; "" when pods need not say it
  std::string trainer_image;
  std::string tensorboard_image;  // for jobs that name none
  GangScheduler gang = GangScheduler::kNone;
  std::string gang_scheduler_name;  // which pods ask for; "": what it is usually called
  // After its time, a pod whose node does not answer is taken from the API server's books.
  absl::Duration lost_after = absl::Minutes(1);
};

// Thread-safe.
class TfJob {
 public:
  // What a job says. InvalidArgument when it has mistakes, with all of them. `warnings` receives
  // what is none and may not be meant.
  static absl::StatusOr<JobSpec> ReadSpec(const Json& object,
                                          std::vector<std::string>* warnings = nullptr);

  // `object`, of which `spec` is, and `options` outlive this.
  TfJob(const Json& object, std::shared_ptr<const JobSpec> spec, const TfJobOptions& options)
      : object_(&object), spec_(std::move(spec)), options_(&options) {}

  const Json& object() const { return *object_; }
  const JobSpec& spec() const { return *spec_; }
  const TfJobOptions& options() const { return *options_; }
  bool is_v1alpha1() const { return &JobKindOf(*object_) == &kOldTfJobs; }
  std::string name() const { return k8s::NameOf(*object_); }
  std::string kubernetes_namespace() const { return k8s::KeyOf(*object_).name_space; }
  std::string uid() const { return k8s::UidOf(*object_); }
  bool suspended() const;
  std::string clean_pod_policy() const;  // None, Running or All
  std::optional<absl::Duration> ttl() const;
  // Of all tasks together; absent: no limit.
  std::optional<int> backoff_limit() const;
  // Of each task, or of the whole job when it restarts as one; of a native job only.
  std::optional<int> max_restarts() const;
  // For tasks of a job that has succeeded to end by themselves; of a native job only.
  absl::Duration finish_grace() const;
  absl::Duration lost_after() const { return options_->lost_after; }

  // Chief, Master, PS, Worker, Evaluator, as far as the job has them.
  std::vector<const RoleSpec*> roles() const;
  UpdatePolicy update_policy() const;
  // Roles whose pods are made only when those of the ones before run.
  std::vector<std::string> start_order() const;
  // What shows its logs; null when it has none.
  const Json* tensorboard() const;

  // Of the pod and the service of a task, or of {kTensorboard, 0}.
  std::string NameOf(const TaskId& task) const;
  std::string GroupName() const;  // of its PodGroup
  Json Labels() const;            // of all that it owns
  Json OwnerReference() const;
  absl::StatusOr<Json> PodOf(const TaskId& task) const;
  // Whether a pod of each role can be made.
  absl::Status CheckPods() const;
  Json ServiceOf(const TaskId& task) const;
  // Of the role's template, whatever the number of replicas.
  std::string TemplateHash(const RoleSpec& role) const;

 private:
  std::string RuntimeId() const;
  // Where tasks find each other: worked out once, for however many pods.
  const ClusterSpec& Cluster() const;
  ClusterSpec Addresses() const;
  // Those that select what is the task's.
  Json LabelsOf(const TaskId& task) const;
  Json MetadataOf(const TaskId& task) const;
  Json TensorboardPod() const;
  Json TensorboardService() const;

  const Json* object_;
  struct LazyCluster {
    absl::once_flag once;
    ClusterSpec addresses;
  };

  std::shared_ptr<const JobSpec> spec_;
  const TfJobOptions* options_;
  std::shared_ptr<LazyCluster> cluster_ = std::make_shared<LazyCluster>();
};

}  // namespace muster::controller
