#include "controller/tfjob.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "job/parse.h"
#include "launch/kubernetes/names.h"
#include "launch/kubernetes/pods.h"

namespace muster::controller {
Json ObjectAt(const Json& json, absl::string_view key) {
  if (!json.is_object()) return Json::object();
  const auto found = json.find(std::string(key));
  return found != json.end() && found->is_object() ? *found : Json::object();
}

std::string TextAt(const Json& json, absl::string_view key) {
  if (!json.is_object()) return "";
  const auto found = json.find(std::string(key));
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

absl::StatusOr<TfJob> TfJob::Parse(const Json& object, const TfJobOptions& options) {
  const std::string name = TextAt(ObjectAt(object, "metadata"), "name");
  MUSTER_ASSIGN_OR_RETURN(
      JobSpec spec, ParseJob(object.dump(-1, ' ', false, Json::error_handler_t::replace),
                             {.file_name = name.empty() ? "TFJob" : name, .working_dir = "/"}));
  return TfJob(object, std::move(spec), options);
}

std::string TfJob::clean_pod_policy() const {
  const std::string policy = TextAt(run_policy(), "cleanPodPolicy");
  return policy.empty() ? "None" : policy;
}

std::optional<absl::Duration> TfJob::ttl() const {
  const Json policy = run_policy();
  const auto found = policy.find("ttlSecondsAfterFinished");
  if (found == policy.end() || !found->is_number_integer()) return std::nullopt;
  return absl::Seconds(found->get<int64_t>());
}

std::optional<int> TfJob::backoff_limit() const {
  if (!run_policy().contains("backoffLimit")) return std::nullopt;
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
  return {{"apiVersion", TextAt(*object_, "apiVersion")},
          {"kind", TextAt(*object_, "kind")},
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
  const Json own = ObjectAt(Json(made), "metadata");
  if (const Json annotations = ObjectAt(own, "annotations"); !annotations.empty()) {
    pod["metadata"]["annotations"] = annotations;
  }
  const Json labels = ObjectAt(own, "labels");
  for (const auto& [key, value] : labels.items()) {
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
