#include "launch/kubernetes/manifests.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "launch/kubernetes/names.h"
#include "launch/kubernetes/notebook.h"

namespace muster::kubernetes {
namespace {

constexpr size_t kLongestLabel = 63;

class Renderer {
 public:
  Renderer(const JobSpec& spec, const RenderOptions& options)
      : spec_(spec), options_(options), namespace_(options.kubernetes_namespace) {
    if (namespace_.empty()) namespace_ = spec.kubernetes_namespace;
    if (namespace_.empty()) namespace_ = "default";
    cluster_ = Addresses(spec, namespace_, options.domain);
  }

  absl::StatusOr<std::vector<Object>> Render() {
    if (options_.create_namespace && namespace_ != "default") {
      objects_.push_back(
          {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", namespace_}}}});
    }
    if (!spec_.train.is_null()) AddConfig();
    AddNetworkPolicy();
    for (const TaskId& task : spec_.Tasks()) MUSTER_RETURN_IF_ERROR(AddTask(task));
    if (!spec_.notebook.is_null()) AddNotebook();
    return std::move(objects_);
  }

 private:
  Object Metadata(const std::string& name) const {
    return {{"name", name}, {"namespace", namespace_}, {"labels", {{kJobLabel, spec_.name}}}};
  }

  void AddConfig() {
    objects_.push_back({{"apiVersion", "v1"},
                        {"kind", "ConfigMap"},
                        {"metadata", Metadata(ConfigName(spec_))},
                        {"data", {{kTrainFile, spec_.train.dump(2)}}}});
  }

  // Tasks speak without asking who is there: nobody else may speak to them.
  void AddNetworkPolicy() {
    const Object tasks = {{"matchLabels", {{kJobLabel, spec_.name}}},
                          {"matchExpressions", {{{"key", kRoleLabel}, {"operator", "Exists"}}}}};
    std::vector<int> ports;
    for (const RoleSpec& role : spec_.roles) ports.push_back(PortOf(role));
    std::sort(ports.begin(), ports.end());
    ports.erase(std::unique(ports.begin(), ports.end()), ports.end());
    Object open = Object::array();
    for (const int port : ports) open.push_back({{"protocol", "TCP"}, {"port", port}});
    const Object own = {{"podSelector", {{"matchLabels", {{kJobLabel, spec_.name}}}}}};
    objects_.push_back(
        {{"apiVersion", "networking.k8s.io/v1"},
         {"kind", "NetworkPolicy"},
         {"metadata", Metadata(spec_.name)},
         {"spec",
          {{"podSelector", tasks},
           {"policyTypes", {"Ingress"}},
           {"ingress", Object::array({{{"from", Object::array({own})}, {"ports", open}}})}}}});
  }

  absl::Status AddTask(const TaskId& task) {
    const RoleSpec& role = *spec_.FindRole(task.role);
    const std::string name = TaskName(spec_, task);
    if (name.size() > kLongestLabel) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the service of ", task.ToString(), " would be called ", name, ", which is ", name.size(),
          " characters long; ", kLongestLabel, " are allowed: give the job a shorter name"));
    }
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
                          // Tasks look for each other before they are ready.
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
    if (spec_.policies.deadline) {
      job["activeDeadlineSeconds"] =
          std::max<int64_t>(1, absl::ToInt64Seconds(*spec_.policies.deadline));
    }
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
                          // Two servers of one address would both answer.
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

}  // namespace muster::kubernetes
