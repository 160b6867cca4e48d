#include "controller/rules/tfjob.h"

#include <algorithm>
#include <functional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/bytes/crc32c.h"
#include "base/bytes/digest.h"
#include "base/status_macros.h"
#include "controller/rules/gang.h"
#include "job/format/parse.h"
#include "manifest/kept_status.h"
#include "manifest/pod_status.h"
#include "manifest/pods.h"
#include "manifest/tensorboard.h"
#include "manifest/tf_server.h"

namespace muster::controller {
namespace {

constexpr char kOperatorName[] = "tfjob-controller";
// A value of its own keeps services of a TFJob from selecting the pods of a TfJob with the same
// name.
constexpr char kV1Alpha1OperatorName[] = "tfjob-v1alpha1-controller";

std::string Label(absl::string_view name) { return absl::StrCat(kLabelPrefix, name); }

const char* RestartPolicyOf(const job::JobSpec& spec, const job::RoleSpec& role) {
  // The operator must see the failure: a restart in place would restart one task alone.
  if (spec.policies.restart_scope == job::RestartScope::kJob) return "Never";
  return role.restart == job::RestartPolicy::kOnFailure ? "OnFailure"
         : role.restart == job::RestartPolicy::kAlways  ? "Always"
                                                        : "Never";
}

// Both accept any JSON value, since a status may hold anything.
template <typename Check>
bool IsListOf(const Json& value, Check check) {
  return value.is_array() && std::all_of(value.begin(), value.end(), [&](const Json& item) {
           return std::invoke(check, item);
         });
}
template <typename Check>
bool IsMapOf(const Json& value, Check check) {
  return value.is_object() && std::all_of(value.begin(), value.end(), [&](const Json& item) {
           return std::invoke(check, item);
         });
}

bool IsCondition(const Json& value) {
  const auto is_text = [&](const char* name) {
    const auto found = value.find(name);
    return found == value.end() || found->is_string();
  };
  return value.is_object() && value.contains("type") && value.contains("status") &&
         is_text("type") && is_text("status") && is_text("reason") && is_text("message") &&
         is_text("lastTransitionTime") && is_text("lastUpdateTime");
}

bool IsRestart(const Json& value) {
  const Json* count = k8s::Find(value, "/count");
  return count != nullptr && count->is_number_integer() && *count >= 0 && *count <= k8s::kMaxCount;
}

}  // namespace

const k8s::ResourceKind& JobKindOf(const Json& job) {
  return k8s::TextAt(job, "/apiVersion") == kTfJobsV1Alpha1.ApiVersion() ? kTfJobsV1Alpha1
                                                                         : manifest::kTfJobs;
}

std::string OwnedSelector() {
  return absl::StrCat(Label("operator-name"), " in (", kOperatorName, ",", kV1Alpha1OperatorName,
                      ")");
}

const k8s::ResourceKind* OwnerKindOf(const Json& object) {
  const std::string name = k8s::LabelOf(object, Label("operator-name"));
  return name == kOperatorName           ? &manifest::kTfJobs
         : name == kV1Alpha1OperatorName ? &kTfJobsV1Alpha1
                                         : nullptr;
}

const Json& ObjectAt(const Json& object, absl::string_view path) {
  static const auto& kNothing = *new Json(Json::object());
  const Json* found = k8s::Find(object, path);
  return found == nullptr || !found->is_object() ? kNothing : *found;
}

Json StatusOf(const Json& object) {
  Json status = manifest::KeptStatus(object);
  const auto keep = [&status](const char* name, bool (*is_good)(const Json&)) {
    if (status.contains(name) && !is_good(status[name])) status.erase(name);
  };
  const auto is_text = [](const Json& value) { return value.is_string(); };
  keep("conditions", [](const Json& all) { return IsListOf(all, IsCondition); });
  keep("restarts", [](const Json& all) { return IsMapOf(all, IsRestart); });
  keep("succeeded", [](const Json& all) { return IsListOf(all, &Json::is_string); });
  keep("replicaStatuses", [](const Json& all) { return IsMapOf(all, &Json::is_object); });
  for (const char* time : {"startTime", "completionTime"}) keep(time, is_text);
  return status;
}

absl::StatusOr<job::JobSpec> TfJob::ReadSpec(const Json& object,
                                             std::vector<std::string>* warnings) {
  return job::ParseTfJobObject(object, warnings);
}

absl::Status TfJob::CheckPods() const {
  for (const job::RoleSpec* role : roles()) {
    if (role->replicas == 0) continue;
    const auto pod = PodOf({role->name, 0});
    if (!pod.ok()) return pod.status();
  }
  return absl::OkStatus();
}

bool TfJob::suspended() const {
  const Json* suspend = k8s::Find(*object_, "/spec/runPolicy/suspend");
  return suspend != nullptr && *suspend == true;
}

std::string TfJob::clean_pod_policy() const {
  const std::string policy = k8s::TextAt(spec_->kubernetes, "/runPolicy/cleanPodPolicy");
  if (!policy.empty()) return policy;
  // v1alpha1 has no such field, and its parameter servers never exit.
  return is_v1alpha1() ? "Running" : "None";
}

std::optional<absl::Duration> TfJob::ttl() const {
  const Json* seconds = k8s::Find(*object_, "/spec/runPolicy/ttlSecondsAfterFinished");
  if (seconds == nullptr || !seconds->is_number_integer()) return std::nullopt;
  return absl::Seconds(seconds->get<int64_t>());
}

std::optional<int> TfJob::max_restarts() const {
  if (spec_->format != job::JobFormat::kNative) return std::nullopt;
  return spec_->policies.max_restarts;
}

absl::Duration TfJob::finish_grace() const {
  return spec_->format == job::JobFormat::kNative ? spec_->policies.finish_grace
                                                  : absl::ZeroDuration();
}

std::optional<int> TfJob::backoff_limit() const {
  if (k8s::Find(*object_, "/spec/runPolicy/backoffLimit") == nullptr) return std::nullopt;
  return spec_->policies.max_restarts;
}

std::vector<const job::RoleSpec*> TfJob::roles() const {
  std::vector<const job::RoleSpec*> roles;
  for (const char* name : {"chief", "master", "ps", "worker", "evaluator"}) {
    if (const job::RoleSpec* role = spec_->FindRole(name)) roles.push_back(role);
  }
  return roles;
}

UpdatePolicy TfJob::update_policy() const {
  const std::string policy = k8s::TextAt(spec_->kubernetes, "/update");
  return policy == "rolling" ? UpdatePolicy::kRolling
         : policy == "never" ? UpdatePolicy::kNever
                             : UpdatePolicy::kRecreate;
}

std::vector<std::string> TfJob::start_order() const {
  const Json* order = k8s::Find(spec_->kubernetes, "/startOrder");
  return order == nullptr ? std::vector<std::string>() : order->get<std::vector<std::string>>();
}

std::string TfJob::TemplateHash(const job::RoleSpec& role) const {
  constexpr size_t kDigits = 16;
  Json hashed = {{"template", role.pod}, {"port", manifest::PortOf(role)}};
  if (role.server != job::Server::kNone) hashed["image"] = role.image;
  return base::Sha256Hex(hashed.dump(-1, ' ', false, Json::error_handler_t::replace))
      .substr(0, kDigits);
}

const Json* TfJob::tensorboard() const { return manifest::TensorboardOf(*spec_); }

// Returns the id of the spec, or one derived from the uid, which is stable without a write to the
// spec.
std::string TfJob::RuntimeId() const {
  constexpr char kDigits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
  std::string id = k8s::TextAt(spec_->kubernetes, "/runtimeId");
  if (!id.empty()) return id;
  for (uint32_t rest = base::Crc32c(uid()); id.size() < 4; rest /= 36) id += kDigits[rest % 36];
  return id;
}

std::string TfJob::NameOf(const cluster::TaskId& task) const {
  if (!is_v1alpha1()) return manifest::TaskName(*spec_, task);
  return absl::StrCat(name().substr(0, manifest::kNamePrefix), "-", task.role, "-", RuntimeId(),
                      task.role == kTensorboard ? "" : absl::StrCat("-", task.index));
}

const cluster::ClusterSpec& TfJob::Cluster() const {
  absl::call_once(cluster_->once, [this] { cluster_->addresses = Addresses(); });
  return cluster_->addresses;
}

// Addresses of v1alpha1 are the service's name without a domain.
cluster::ClusterSpec TfJob::Addresses() const {
  if (!is_v1alpha1()) {
    return manifest::Addresses(*spec_, kubernetes_namespace(), options_->domain);
  }
  cluster::ClusterSpec cluster;
  for (const cluster::TaskId& task : spec_->Tasks()) {
    const int port = manifest::PortOf(*spec_->FindRole(task.role));
    cluster.Set(task, absl::StrCat(NameOf(task), ":", port));
  }
  return cluster;
}

std::string TfJob::GroupName() const {
  if (!is_v1alpha1()) return name();
  return absl::StrCat(name().substr(0, manifest::kNamePrefix), "-", RuntimeId());
}

Json TfJob::OwnerReference() const {
  return {{"apiVersion", k8s::TextAt(*object_, "/apiVersion")},
          {"kind", k8s::TextAt(*object_, "/kind")},
          {"name", name()},
          {"uid", uid()},
          {"controller", true},
          {"blockOwnerDeletion", true}};
}

Json TfJob::Labels() const {
  return {{Label("operator-name"), is_v1alpha1() ? kV1Alpha1OperatorName : kOperatorName},
          {manifest::kTfJobNameLabel, name()}};
}

Json TfJob::LabelsOf(const cluster::TaskId& task) const {
  Json labels = Labels();
  labels[manifest::kReplicaTypeLabel] = task.role;
  labels[manifest::kReplicaIndexLabel] = absl::StrCat(task.index);
  return labels;
}

Json TfJob::MetadataOf(const cluster::TaskId& task) const {
  Json labels = LabelsOf(task);
  if (is_v1alpha1()) {  // labels that clients of v1alpha1 select by
    labels["tensorflow.org"] = "";
    labels["tf_job_name"] = name();
    labels["job_type"] = absl::AsciiStrToUpper(task.role);
    labels["runtime_id"] = RuntimeId();
    labels["task_index"] = absl::StrCat(task.index);
  }
  return {{"name", NameOf(task)},
          {"namespace", kubernetes_namespace()},
          {"labels", std::move(labels)},
          {"ownerReferences", Json::array({OwnerReference()})}};
}

absl::StatusOr<Json> TfJob::PodOf(const cluster::TaskId& task) const {
  if (task.role == kTensorboard) return TensorboardPod();
  const job::RoleSpec& role = *spec_->FindRole(task.role);
  MUSTER_ASSIGN_OR_RETURN(
      const manifest::Object made,
      manifest::PodTemplate(*spec_, Cluster(), task,
                            {.job_id = name(), .trainer_image = options_->trainer_image}));
  Json pod = {{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", MetadataOf(task)}};
  const Json metadata = made["metadata"];
  if (const Json* annotations = k8s::Find(metadata, "/annotations")) {
    pod["metadata"]["annotations"] = *annotations;
  }
  pod["metadata"]["annotations"][kTemplateHash] = TemplateHash(role);
  for (const auto& [key, value] : metadata["labels"].items()) {
    pod["metadata"]["labels"].emplace(key, value);
  }
  if (job::ChiefTask(*spec_) == task) {
    pod["metadata"]["labels"][Label("job-role")] = "master";
  }
  pod["spec"] = made["spec"];
  pod["spec"]["restartPolicy"] = RestartPolicyOf(*spec_, role);
  AddToPodGroup(*this, task.role, pod);
  return pod;
}

Json TfJob::ServiceOf(const cluster::TaskId& task) const {
  if (task.role == kTensorboard) return TensorboardService();
  const int port = manifest::PortOf(*spec_->FindRole(task.role));
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", MetadataOf(task)},
          {"spec",
           {{"clusterIP", "None"},
            {"publishNotReadyAddresses", true},
            {"selector", LabelsOf(task)},
            {"ports", Json::array({{{"name", manifest::PortName(*spec_)}, {"port", port}}})}}}};
}

Json TfJob::TfServerConfig() const {
  return manifest::TfServerConfig({{"name", manifest::TfServerName(*spec_)},
                                   {"namespace", kubernetes_namespace()},
                                   {"labels", Labels()},
                                   {"ownerReferences", Json::array({OwnerReference()})}});
}

Json TfJob::TensorboardPod() const {
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", MetadataOf({kTensorboard, 0})},
          {"spec", manifest::TensorboardPod(*spec_, options_->tensorboard_image)}};
}

Json TfJob::TensorboardService() const {
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", MetadataOf({kTensorboard, 0})},
          {"spec", manifest::TensorboardService(*spec_, LabelsOf({kTensorboard, 0}))}};
}

}  // namespace muster::controller
