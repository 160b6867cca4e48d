#include "manifest/manifests.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "job/tfjob_format.h"
#include "manifest/names.h"
#include "manifest/notebook.h"

namespace muster::manifest {
namespace {

constexpr size_t kLongestLabel = 63;
// This annotation changes with the ConfigMap, so that pods are recreated.
constexpr char kConfigHash[] = "muster/config-hash";

absl::StatusOr<std::string> TfJobRole(const std::string& role) {
  if (std::string name = TfJobRoleName(role); !name.empty()) return name;
  return absl::InvalidArgumentError(absl::StrCat(
      "the operator does not know the role '", role,
      "'; it runs chief, master, ps, worker and evaluator. `muster render` makes manifests of any "
      "role, for kubectl apply"));
}

class Renderer {
 public:
  Renderer(const JobSpec& spec, const RenderOptions& options)
      : spec_(spec), options_(options), namespace_(options.kubernetes_namespace) {
    if (namespace_.empty()) namespace_ = spec.kubernetes_namespace;
    if (namespace_.empty()) namespace_ = "default";
    cluster_ = Addresses(spec, namespace_, options.domain);
  }

  absl::StatusOr<std::vector<Object>> Render() {
    AddCommon();
    for (const TaskId& task : spec_.Tasks()) MUSTER_RETURN_IF_ERROR(AddTask(task));
    if (!spec_.notebook.is_null()) AddNotebook();
    return std::move(objects_);
  }

  absl::StatusOr<std::vector<Object>> RenderForOperator() {
    if (spec_.format == JobFormat::kRenderedCluster) {
      return absl::InvalidArgumentError(
          "the servers of such a cluster never end, which is no job for an operator; `muster "
          "render` makes manifests of it, for kubectl apply");
    }
    if (!spec_.notebook.is_null() && NotebookName(spec_).size() > kLongestLabel) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the notebook would be called ", NotebookName(spec_), "; give the job a shorter name"));
    }
    AddCommon();
    if (!spec_.notebook.is_null()) AddNotebook();
    for (const TaskId& task : spec_.Tasks()) MUSTER_RETURN_IF_ERROR(CheckName(task));
    MUSTER_RETURN_IF_ERROR(AddTfJob());
    return std::move(objects_);
  }

 private:
  void AddCommon() {
    if (options_.create_namespace && namespace_ != "default") {
      objects_.push_back(
          {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", namespace_}}}});
    }
    if (!spec_.train.is_null()) AddConfig();
    if (HasTls(spec_) && options_.tls) AddTls(*options_.tls);
    AddNetworkPolicy();
  }

  Object Metadata(const std::string& name) const {
    return {{"name", name}, {"namespace", namespace_}, {"labels", {{kJobLabel, spec_.name}}}};
  }

  void AddConfig() {
    objects_.push_back({{"apiVersion", "v1"},
                        {"kind", "ConfigMap"},
                        {"metadata", Metadata(ConfigName(spec_))},
                        {"data", {{kTrainFile, spec_.train.dump(2)}}}});
  }

  void AddTls(const JobTls& tls) {
    objects_.push_back({{"apiVersion", "v1"},
                        {"kind", "Secret"},
                        {"metadata", Metadata(TlsName(spec_))},
                        {"type", "kubernetes.io/tls"},
                        {"data",
                         {{"ca.crt", absl::Base64Escape(tls.authority)},
                          {"tls.crt", absl::Base64Escape(tls.certificate)},
                          {"tls.key", absl::Base64Escape(tls.key)}}}});
  }

  // User programs do not authenticate their peers, so only the job's own pods may reach them.
  void AddNetworkPolicy() {
    const Object tasks = {{"matchLabels", {{kJobLabel, spec_.name}}},
                          {"matchExpressions", {{{"key", kRoleLabel}, {"operator", "Exists"}}}}};
    const Object own = {{"podSelector", {{"matchLabels", {{kJobLabel, spec_.name}}}}}};
    objects_.push_back({{"apiVersion", "networking.k8s.io/v1"},
                        {"kind", "NetworkPolicy"},
                        {"metadata", Metadata(spec_.name)},
                        {"spec",
                         {{"podSelector", tasks},
                          {"policyTypes", {"Ingress"}},
                          // No ports are listed: libraries such as Gloo and NCCL pick their own.
                          {"ingress", Object::array({{{"from", Object::array({own})}}})}}}});
  }

  absl::Status CheckName(const TaskId& task) const {
    const std::string name = TaskName(spec_, task);
    if (name.size() <= kLongestLabel) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "the service of ", task.ToString(), " would be called ", name, ", which is ", name.size(),
        " characters long; ", kLongestLabel, " are allowed: give the job a shorter name"));
  }

  // Preserves the fields of a manifest. Expresses a native job in TFJob's fields, and in
  // annotations where TFJob has none.
  absl::Status AddTfJob() {
    Object metadata = Metadata(spec_.name);
    Object body = Object::object();
    if (IsTfJob(spec_)) {
      for (const char* key : {"labels", "annotations"}) {
        if (spec_.kubernetes.contains(key)) metadata[key].update(Object(spec_.kubernetes[key]));
      }
      if (spec_.kubernetes.contains("runPolicy")) body["runPolicy"] = spec_.kubernetes["runPolicy"];
    } else {
      metadata["annotations"] = NativeAnnotations();
      body["runPolicy"] = NativeRunPolicy();
    }
    if (spec_.policies.success == SuccessPolicy::kAllWorkers) body["successPolicy"] = "AllWorkers";
    if (spec_.dynamic_workers) body["enableDynamicWorker"] = true;
    for (const RoleSpec& role : spec_.roles) {
      MUSTER_ASSIGN_OR_RETURN(const std::string title, TfJobRole(role.name));
      MUSTER_ASSIGN_OR_RETURN(Object pod, RoleTemplate(spec_, role,
                                                       {.job_id = spec_.name,
                                                        .trainer_image = options_.trainer_image}));
      if (!spec_.train.is_null()) {
        pod["metadata"]["annotations"][kConfigHash] = Sha256Hex(spec_.train.dump()).substr(0, 16);
      }
      body["tfReplicaSpecs"][title] = {{"replicas", role.replicas},
                                       {"restartPolicy", TfJobPolicyName(role.restart)},
                                       {"template", std::move(pod)}};
    }
    objects_.push_back({{"apiVersion", kTfJobs.ApiVersion()},
                        {"kind", std::string(kTfJobs.kind)},
                        {"metadata", std::move(metadata)},
                        {"spec", std::move(body)}});
    return absl::OkStatus();
  }

  Object NativeAnnotations() const {
    Object annotations = {{kFormatAnnotation, kNativeFormat},
                          {kMaxRestartsAnnotation, absl::StrCat(spec_.policies.max_restarts)},
                          {kRestartScopeAnnotation,
                           spec_.policies.restart_scope == RestartScope::kJob ? "job" : "task"}};
    annotations[kFinishGraceAnnotation] = absl::StrCat(
        absl::ToInt64Seconds(absl::Ceil(spec_.policies.finish_grace, absl::Seconds(1))));
    if (!spec_.model_dir.empty()) annotations[kModelDirAnnotation] = spec_.model_dir;
    return annotations;
  }

  Object NativeRunPolicy() const {
    Object policy = {{"cleanPodPolicy", "Running"}};  // parameter servers end with the job
    if (spec_.policies.deadline) policy["activeDeadlineSeconds"] = DeadlineSeconds();
    return policy;
  }

  int64_t DeadlineSeconds() const {
    return std::max<int64_t>(1, absl::ToInt64Seconds(*spec_.policies.deadline));
  }

  absl::Status AddTask(const TaskId& task) {
    const RoleSpec& role = *spec_.FindRole(task.role);
    MUSTER_RETURN_IF_ERROR(CheckName(task));
    MUSTER_ASSIGN_OR_RETURN(
        Object pod, PodTemplate(spec_, cluster_, task,
                                {.job_id = spec_.name, .trainer_image = options_.trainer_image}));
    AddService(task, PortOf(role), pod["metadata"]["labels"]);
    if (spec_.format == JobFormat::kRenderedCluster) {
      AddDeployment(task, std::move(pod));
    } else {
      AddJob(role, task, std::move(pod));
    }
    return absl::OkStatus();
  }

  void AddService(const TaskId& task, int port, const Object& labels) {
    Object metadata = Metadata(TaskName(spec_, task));
    metadata["labels"] = labels;
    objects_.push_back({{"apiVersion", "v1"},
                        {"kind", "Service"},
                        {"metadata", std::move(metadata)},
                        {"spec",
                         {{"clusterIP", "None"},
                          // Tasks resolve each other's names before they are ready.
                          {"publishNotReadyAddresses", true},
                          {"selector", LabelsOf(spec_, task)},
                          {"ports", {{{"name", PortName(spec_)}, {"port", port}}}}}}});
  }

  void AddJob(const RoleSpec& role, const TaskId& task, Object pod) {
    const bool never = role.restart == RestartPolicy::kNever;
    pod["spec"]["restartPolicy"] = never ? "Never" : "OnFailure";
    Object job = {{"completions", 1},
                  {"parallelism", 1},
                  {"backoffLimit", never ? 0 : spec_.policies.max_restarts}};
    if (spec_.policies.deadline) job["activeDeadlineSeconds"] = DeadlineSeconds();
    pod["spec"]["terminationGracePeriodSeconds"] =
        absl::ToInt64Seconds(absl::Ceil(spec_.policies.stop_grace, absl::Seconds(1)));
    Object metadata = Metadata(TaskName(spec_, task));
    metadata["labels"] = LabelsOf(spec_, task);
    job["template"] = std::move(pod);
    objects_.push_back({{"apiVersion", "batch/v1"},
                        {"kind", "Job"},
                        {"metadata", std::move(metadata)},
                        {"spec", std::move(job)}});
  }

  void AddDeployment(const TaskId& task, Object pod) {
    Object metadata = Metadata(TaskName(spec_, task));
    metadata["labels"] = LabelsOf(spec_, task);
    objects_.push_back({{"apiVersion", "apps/v1"},
                        {"kind", "Deployment"},
                        {"metadata", std::move(metadata)},
                        {"spec",
                         {{"replicas", 1},
                          // A rolling update would run two servers at one address.
                          {"strategy", {{"type", "Recreate"}}},
                          {"selector", {{"matchLabels", LabelsOf(spec_, task)}}},
                          {"template", std::move(pod)}}}});
  }

  void AddNotebook() {
    for (Object& object : Notebook(spec_, {.kubernetes_namespace = namespace_,
                                          .image = options_.notebook_image,
                                          .salt = options_.salt})) {
      objects_.push_back(std::move(object));
    }
  }

  const JobSpec& spec_;
  const RenderOptions& options_;
  std::string namespace_;
  ClusterSpec cluster_;
  std::vector<Object> objects_;
};

}  // namespace

absl::StatusOr<std::vector<Object>> RenderJob(const JobSpec& spec, const RenderOptions& options) {
  return Renderer(spec, options).Render();
}

absl::StatusOr<std::vector<Object>> RenderTfJob(const JobSpec& spec, const RenderOptions& options) {
  return Renderer(spec, options).RenderForOperator();
}

}  // namespace muster::manifest
