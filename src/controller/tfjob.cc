#include "controller/tfjob.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "job/parse.h"
#include "launch/kubernetes/names.h"
#include "launch/kubernetes/pods.h"

namespace muster::controller {

Json StatusOf(const Json& object) {
  const Json* status = k8s::Find(object, "/status");
  return status != nullptr && status->is_object() ? *status : Json::object();
}

absl::StatusOr<TfJob> TfJob::Parse(const Json& object, const TfJobOptions& options) {
  const std::string name = k8s::NameOf(object);
  MUSTER_ASSIGN_OR_RETURN(
      JobSpec spec, ParseJob(object.dump(-1, ' ', false, Json::error_handler_t::replace),
                             {.file_name = name.empty() ? "TFJob" : name, .working_dir = "/"}));
  return TfJob(object, std::move(spec), options);
}

bool TfJob::suspended() const {
  const Json* suspend = k8s::Find(*object_, "/spec/runPolicy/suspend");
  return suspend != nullptr && *suspend == true;
}

std::string TfJob::clean_pod_policy() const {
  const std::string policy = k8s::TextAt(*object_, "/spec/runPolicy/cleanPodPolicy");
  return policy.empty() ? "None" : policy;
}

std::optional<absl::Duration> TfJob::ttl() const {
  const Json* seconds = k8s::Find(*object_, "/spec/runPolicy/ttlSecondsAfterFinished");
  if (seconds == nullptr || !seconds->is_number_integer()) return std::nullopt;
  return absl::Seconds(seconds->get<int64_t>());
}

std::optional<int> TfJob::backoff_limit() const {
  if (k8s::Find(*object_, "/spec/runPolicy/backoffLimit") == nullptr) return std::nullopt;
  return spec_.policies.max_restarts;
}

std::vector<const RoleSpec*> TfJob::roles() const {
  std::vector<const RoleSpec*> roles;
  for (const char* name : {"chief", "master", "ps", "worker", "evaluator"}) {
    if (const RoleSpec* role = spec_.FindRole(name)) roles.push_back(role);
  }
  return roles;
}

std::string TfJob::NameOf(const TaskId& task) const { return kubernetes::TaskName(spec_, task); }

Json TfJob::OwnerReference() const {
  return {{"apiVersion", k8s::TextAt(*object_, "/apiVersion")},
          {"kind", k8s::TextAt(*object_, "/kind")},
          {"name", name()},
          {"uid", uid()},
          {"controller", true},
          {"blockOwnerDeletion", true}};
}

Json TfJob::LabelsOf(const TaskId& task) const {
  const auto label = [](absl::string_view key) { return absl::StrCat(kLabelPrefix, key); };
  return {{label("operator-name"), kOperatorName},
          {label("job-name"), name()},
          {label("replica-type"), task.role},
          {label("replica-index"), absl::StrCat(task.index)}};
}

Json TfJob::MetadataOf(const TaskId& task) const {
  return {{"name", NameOf(task)},
          {"namespace", kubernetes_namespace()},
          {"labels", LabelsOf(task)},
          {"ownerReferences", Json::array({OwnerReference()})}};
}

absl::StatusOr<Json> TfJob::PodOf(const TaskId& task) const {
  const ClusterSpec cluster =
      kubernetes::Addresses(spec_, kubernetes_namespace(), options_->domain);
  MUSTER_ASSIGN_OR_RETURN(
      const kubernetes::Object made,
      kubernetes::PodTemplate(spec_, cluster, task,
                              {.job_id = name(), .trainer_image = options_->trainer_image}));
  Json pod = {{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", MetadataOf(task)}};
  const Json metadata = made["metadata"];
  if (const Json* annotations = k8s::Find(metadata, "/annotations")) {
    pod["metadata"]["annotations"] = *annotations;
  }
  for (const auto& [key, value] : metadata["labels"].items()) {
    pod["metadata"]["labels"].emplace(key, value);
  }
  if (ChiefTask(spec_) == task) {
    pod["metadata"]["labels"][absl::StrCat(kLabelPrefix, "job-role")] = "master";
  }
  pod["spec"] = made["spec"];
  const RestartPolicy restart = spec_.FindRole(task.role)->restart;
  pod["spec"]["restartPolicy"] = restart == RestartPolicy::kOnFailure ? "OnFailure"
                                 : restart == RestartPolicy::kAlways  ? "Always"
                                                                      : "Never";
  return pod;
}

Json TfJob::ServiceOf(const TaskId& task) const {
  const int port = kubernetes::PortOf(*spec_.FindRole(task.role));
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", MetadataOf(task)},
          {"spec",
           {{"clusterIP", "None"},
            {"publishNotReadyAddresses", true},
            {"selector", LabelsOf(task)},
            {"ports", Json::array({{{"name", kubernetes::PortName(spec_)}, {"port", port}}})}}}};
}

}  // namespace muster::controller
