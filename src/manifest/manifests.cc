#include "manifest/manifests.h"

#include <algorithm>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/bytes/digest.h"
#include "base/status_macros.h"
#include "job/format/tfjob_format.h"
#include "job/images.h"
#include "k8s/resource.h"
#include "manifest/names.h"
#include "manifest/notebook.h"
#include "manifest/tensorboard.h"
#include "manifest/tf_server.h"
#include "manifest/work_files.h"

namespace muster::manifest {
namespace {

constexpr size_t kMaxLabelLength = 63;
// This annotation changes with the ConfigMap, so that pods are recreated.
constexpr char kConfigHash[] = "muster/config-hash";

absl::StatusOr<std::string> TfJobRole(const std::string& role) {
  if (std::string name = job::TfJobRoleName(role); !name.empty()) return name;
  return absl::InvalidArgumentError(absl::StrCat(
      "the operator does not support the role '", role,
      "'; it runs chief, master, ps, worker and evaluator. `muster render` prints manifests for "
      "any role, for kubectl apply"));
}

class Renderer {
 public:
  Renderer(const job::JobSpec& spec, const RenderOptions& options)
      : spec_(spec), options_(options), namespace_(options.kubernetes_namespace) {
    if (namespace_.empty()) namespace_ = spec.kubernetes_namespace;
    if (namespace_.empty()) namespace_ = "default";
    notebook_namespace_ = namespace_;
    if (options.kubernetes_namespace.empty() && spec.notebook.is_object()) {
      notebook_namespace_ = spec.notebook.value("namespace", namespace_);
    }
    cluster_ = Addresses(spec, namespace_, options.domain);
  }

  absl::StatusOr<std::vector<Object>> Render() {
    AddCommon();
    for (const cluster::TaskId& task : spec_.Tasks()) MUSTER_RETURN_IF_ERROR(AddTask(task));
    if (!spec_.notebook.is_null()) AddNotebook();
    if (TensorboardOf(spec_) != nullptr) AddTensorboard();
    return std::move(objects_);
  }

  absl::StatusOr<std::vector<Object>> RenderForOperator() {
    if (spec_.format == job::JobFormat::kRenderedCluster) {
      return absl::InvalidArgumentError(
          "the operator does not run rendered clusters, whose servers never exit; `muster render` "
          "prints manifests for kubectl apply");
    }
    if (!spec_.notebook.is_null() && NotebookName(spec_).size() > kMaxLabelLength) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the notebook would be called ", NotebookName(spec_), "; give the job a shorter name"));
    }
    AddCommon();
    AddWorkFileParts();
    if (!spec_.notebook.is_null()) AddNotebook();
    for (const cluster::TaskId& task : spec_.Tasks()) MUSTER_RETURN_IF_ERROR(CheckName(task));
    MUSTER_RETURN_IF_ERROR(AddTfJob());
    return std::move(objects_);
  }

 private:
  void AddCommon() {
    if (options_.create_namespace) {
      for (const std::string& name : std::set<std::string>{namespace_, notebook_namespace_}) {
        if (name == "default") continue;
        objects_.push_back(
            {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", name}}}});
      }
    }
    if (!spec_.train.is_null()) AddConfig();
    if (MountsTfServer(spec_)) objects_.push_back(TfServerConfig(Metadata(TfServerName(spec_))));
    if (HasTls(spec_) && options_.tls) AddTls(*options_.tls);
    if (!spec_.roles.empty()) AddNetworkPolicy();
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

  void AddWorkFileParts() {
    for (size_t i = 0; i < options_.file_parts.size(); ++i) {
      const int index = static_cast<int>(i);
      objects_.push_back(WorkFilesConfig(Metadata(WorkFilesName(spec_, options_.files, index)),
                                         index, options_.file_parts[i]));
    }
  }

  void AddTls(const job::JobTls& tls) {
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
    Object peers = Object::array({own});
    if (notebook_namespace_ != namespace_) {
      Object notebook = own;
      notebook["namespaceSelector"] = {
          {"matchLabels", {{"kubernetes.io/metadata.name", notebook_namespace_}}}};
      peers.push_back(std::move(notebook));
    }
    objects_.push_back({{"apiVersion", "networking.k8s.io/v1"},
                        {"kind", "NetworkPolicy"},
                        {"metadata", Metadata(spec_.name)},
                        {"spec",
                         {{"podSelector", tasks},
                          {"policyTypes", {"Ingress"}},
                          // No ports are listed: libraries such as Gloo and NCCL pick their own.
                          {"ingress", Object::array({{{"from", std::move(peers)}}})}}}});
  }

  absl::Status CheckName(const cluster::TaskId& task) const {
    const std::string name = TaskName(spec_, task);
    if (name.size() <= kMaxLabelLength) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "the service of ", task.ToString(), " would be called ", name, ", which is ", name.size(),
        " characters long; ", kMaxLabelLength, " are allowed: give the job a shorter name"));
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
      if (spec_.format == job::JobFormat::kTfJobV1Alpha1) AddOldFields(metadata, body);
    } else {
      metadata["annotations"] = NativeAnnotations();
      body["runPolicy"] = NativeRunPolicy();
    }
    if (spec_.policies.success == job::SuccessPolicy::kAllWorkers)
      body["successPolicy"] = "AllWorkers";
    if (spec_.dynamic_workers) body["enableDynamicWorker"] = true;
    for (const job::RoleSpec& role : spec_.roles) {
      MUSTER_ASSIGN_OR_RETURN(const std::string title, TfJobRole(role.name));
      MUSTER_ASSIGN_OR_RETURN(Object pod, RoleTemplate(spec_, role,
                                                       {.job_id = spec_.name,
                                                        .trainer_image = options_.trainer_image,
                                                        .files = options_.files}));
      if (!spec_.train.is_null()) {
        pod["metadata"]["annotations"][kConfigHash] =
            base::Sha256Hex(spec_.train.dump()).substr(0, 16);
      }
      body["tfReplicaSpecs"][title] = {{"replicas", role.replicas},
                                       {"restartPolicy", job::TfJobPolicyName(role.restart)},
                                       {"template", std::move(pod)}};
    }
    objects_.push_back({{"apiVersion", kTfJobs.ApiVersion()},
                        {"kind", std::string(kTfJobs.kind)},
                        {"metadata", std::move(metadata)},
                        {"spec", std::move(body)}});
    return absl::OkStatus();
  }

  // Keeps the fields of v1alpha1 that v1 does not have, and its default for the cleanup.
  void AddOldFields(Object& metadata, Object& body) const {
    const auto annotate = [&](const char* key, const std::string& text) {
      if (!text.empty()) metadata["annotations"][key] = text;
    };
    annotate(job::kRuntimeIdAnnotation, k8s::TextAt(spec_.kubernetes, "/runtimeId"));
    if (spec_.policies.chief) annotate(job::kChiefAnnotation, spec_.policies.chief->ToString());
    if (const nlohmann::json* section = TensorboardOf(spec_)) {
      nlohmann::json kept = *section;
      const std::string image = k8s::TextAt(spec_.kubernetes, "/tfImage");
      if (!image.empty() && !kept.contains("image")) kept["image"] = image;
      annotate(job::kTensorboardAnnotation, kept.dump());
    }
    if (!body["runPolicy"].contains("cleanPodPolicy")) {
      body["runPolicy"]["cleanPodPolicy"] = "Running";
    }
  }

  Object NativeAnnotations() const {
    Object annotations = {
        {job::kFormatAnnotation, job::kNativeFormat},
        {job::kMaxRestartsAnnotation, absl::StrCat(spec_.policies.max_restarts)},
        {job::kRestartScopeAnnotation,
         spec_.policies.restart_scope == job::RestartScope::kJob ? "job" : "task"}};
    annotations[job::kFinishGraceAnnotation] = absl::StrCat(
        absl::ToInt64Seconds(absl::Ceil(spec_.policies.finish_grace, absl::Seconds(1))));
    if (!spec_.model_dir.empty()) annotations[job::kModelDirAnnotation] = spec_.model_dir;
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

  absl::Status AddTask(const cluster::TaskId& task) {
    const job::RoleSpec& role = *spec_.FindRole(task.role);
    MUSTER_RETURN_IF_ERROR(CheckName(task));
    MUSTER_ASSIGN_OR_RETURN(
        Object pod, PodTemplate(spec_, cluster_, task,
                                {.job_id = spec_.name, .trainer_image = options_.trainer_image}));
    AddService(task, PortOf(role), pod["metadata"]["labels"]);
    if (spec_.format == job::JobFormat::kRenderedCluster) {
      AddReplicaSet(task, std::move(pod));
    } else {
      AddJob(role, task, std::move(pod));
    }
    return absl::OkStatus();
  }

  void AddService(const cluster::TaskId& task, int port, const Object& labels) {
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

  void AddJob(const job::RoleSpec& role, const cluster::TaskId& task, Object pod) {
    const bool never = role.restart == job::RestartPolicy::kNever;
    pod["spec"]["restartPolicy"] = never ? "Never" : "OnFailure";
    Object job = {{"completions", 1},
                  {"parallelism", 1},
                  {"backoffLimit", never ? 0 : spec_.policies.max_restarts}};
    if (spec_.policies.deadline) job["activeDeadlineSeconds"] = DeadlineSeconds();
    if (const nlohmann::json* ttl =
            k8s::Find(spec_.kubernetes, "/runPolicy/ttlSecondsAfterFinished")) {
      job["ttlSecondsAfterFinished"] = *ttl;
    }
    const nlohmann::json* suspend = k8s::Find(spec_.kubernetes, "/runPolicy/suspend");
    if (suspend != nullptr && *suspend == true) job["suspend"] = true;
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

  // The pod of a ReplicaSet is called <role>-<index>-<suffix>. The servers of users' images derive
  // their task from that name; the name of a Deployment's pod has one part more.
  void AddReplicaSet(const cluster::TaskId& task, Object pod) {
    Object metadata = Metadata(TaskName(spec_, task));
    metadata["labels"] = LabelsOf(spec_, task);
    objects_.push_back({{"apiVersion", "apps/v1"},
                        {"kind", "ReplicaSet"},
                        {"metadata", std::move(metadata)},
                        {"spec",
                         {{"replicas", 1},
                          {"selector", {{"matchLabels", LabelsOf(spec_, task)}}},
                          {"template", std::move(pod)}}}});
  }

  void AddTensorboard() {
    const std::string name = absl::StrCat(spec_.name, "-", kTensorboard);
    const Object selector = {{kJobLabel, spec_.name}, {"muster/tensorboard", name}};
    Object metadata = Metadata(name);
    metadata["labels"] = selector;
    objects_.push_back({{"apiVersion", "v1"},
                        {"kind", "Service"},
                        {"metadata", metadata},
                        {"spec", TensorboardService(spec_, selector)}});
    objects_.push_back({{"apiVersion", "apps/v1"},
                        {"kind", "Deployment"},
                        {"metadata", metadata},
                        {"spec",
                         {{"replicas", 1},
                          {"selector", {{"matchLabels", selector}}},
                          {"template",
                           {{"metadata", {{"labels", selector}}},
                            {"spec", TensorboardPod(spec_, job::kTensorflowImage)}}}}}});
  }

  // TF_CONFIG does not contain the evaluator, except in a rendered cluster, where it is a server.
  cluster::ClusterSpec NotebookCluster() const {
    return spec_.format == job::JobFormat::kRenderedCluster ? cluster_
                                                            : cluster_.Without("evaluator");
  }

  void AddNotebook() {
    for (Object& object : Notebook(spec_, {.kubernetes_namespace = notebook_namespace_,
                                          .image = options_.notebook_image,
                                          .salt = options_.salt,
                                          .cluster = NotebookCluster()})) {
      objects_.push_back(std::move(object));
    }
  }

  const job::JobSpec& spec_;
  const RenderOptions& options_;
  std::string namespace_;
  std::string notebook_namespace_;
  cluster::ClusterSpec cluster_;
  std::vector<Object> objects_;
};

}  // namespace

std::vector<std::string> RenderLimits(const job::JobSpec& spec) {
  std::vector<std::string> limits;
  const auto add = [&limits](absl::string_view field, absl::string_view instead) {
    limits.push_back(absl::StrCat(field, ": ", instead));
  };
  if (spec.format == job::JobFormat::kRenderedCluster) return limits;
  const job::Policies usual;
  if (spec.policies.chief) {
    add("terminationPolicy", "every task is a Job of its own; see that of the chief");
  }
  if (spec.policies.restart_scope == job::RestartScope::kJob) {
    add("restart_scope", "a task restarts alone");
  }
  if (spec.policies.stall) add("stall", "stalled tasks are not detected");
  if (spec.policies.start_timeout != usual.start_timeout) {
    add("start_timeout", "only tasks of the built-in trainer time out");
  }
  const nlohmann::json* policy = k8s::Find(spec.kubernetes, "/runPolicy");
  if (policy == nullptr || !policy->is_object()) return limits;
  for (const char* key : {"cleanPodPolicy", "schedulingPolicy", "managedBy"}) {
    const auto found = policy->find(key);
    if (found == policy->end() || found->is_null() || *found == "None" || *found == "") continue;
    add(absl::StrCat("runPolicy: ", key), "needs the operator; `muster run --on kubernetes`");
  }
  return limits;
}

absl::StatusOr<std::vector<Object>> RenderJob(const job::JobSpec& spec,
                                              const RenderOptions& options) {
  return Renderer(spec, options).Render();
}

absl::StatusOr<std::vector<Object>> RenderTfJob(const job::JobSpec& spec,
                                                const RenderOptions& options) {
  return Renderer(spec, options).RenderForOperator();
}

}  // namespace muster::manifest
