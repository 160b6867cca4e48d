// A TFJob as the API server has it, and the pods and services that it stands for.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "controller/conditions.h"
#include "job/job_spec.h"

namespace muster::controller {

inline constexpr char kLabelPrefix[] = "training.kubeflow.org/";
inline constexpr char kOperatorName[] = "tfjob-controller";
inline constexpr char kContainer[] = "tensorflow";  // the one whose exit code counts

// What a member that holds an object, or nothing, holds.
Json ObjectAt(const Json& json, absl::string_view key);
std::string TextAt(const Json& json, absl::string_view key);

struct TfJobOptions {
  std::string domain;  // of the cluster; "" when pods need not say it
  std::string trainer_image;
  // After its time, a pod whose node does not answer is taken from the API server's books.
  absl::Duration lost_after = absl::Minutes(1);
};

class TfJob {
 public:
  // InvalidArgument when its spec has mistakes, with all of them. `object` outlives this.
  static absl::StatusOr<TfJob> Parse(const Json& object, const TfJobOptions& options);

  const Json& object() const { return *object_; }
  const JobSpec& spec() const { return spec_; }
  std::string name() const { return TextAt(metadata(), "name"); }
  std::string kubernetes_namespace() const { return TextAt(metadata(), "namespace"); }
  std::string uid() const { return TextAt(metadata(), "uid"); }
  Json run_policy() const { return ObjectAt((*object_)["spec"], "runPolicy"); }
  bool suspended() const { return run_policy().value("suspend", false); }
  std::string clean_pod_policy() const;  // None, Running or All
  std::optional<absl::Duration> ttl() const;
  // Of all tasks together; absent: no limit.
  std::optional<int> backoff_limit() const;
  absl::Duration lost_after() const { return options_->lost_after; }

  // Chief, Master, PS, Worker, Evaluator, as far as the job has them.
  std::vector<const RoleSpec*> roles() const;

  std::string NameOf(const TaskId& task) const;
  Json OwnerReference() const;
  absl::StatusOr<Json> PodOf(const TaskId& task) const;
  Json ServiceOf(const TaskId& task) const;

 private:
  TfJob(const Json& object, JobSpec spec, const TfJobOptions& options)
      : object_(&object), spec_(std::move(spec)), options_(&options) {}
  const Json& metadata() const { return (*object_)["metadata"]; }
  Json LabelsOf(const TaskId& task) const;
  Json MetadataOf(const TaskId& task) const;

  const Json* object_;
  JobSpec spec_;
  const TfJobOptions* options_;
};

}  // namespace muster::controller
