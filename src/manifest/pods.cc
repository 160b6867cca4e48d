#include "manifest/pods.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "base/storage_schemes.h"
#include "job/format/pod_template.h"
#include "manifest/names.h"
#include "manifest/security.h"
#include "manifest/tf_server.h"
#include "manifest/work_files.h"

namespace muster::manifest {
namespace {

constexpr char kRunFolder[] = "/run/muster";
constexpr char kScratchFolder[] = "/tmp";
constexpr char kTlsFolder[] = "/etc/muster-tls";
constexpr char kTrainPath[] = "/etc/muster/train.json";  // kTrainFile in kConfigFolder
constexpr char kTrainer[] = "muster-trainer";
constexpr int kUser = 65532;  // the unprivileged user of distroless images

// Escapes text for Kubernetes, which expands $(NAME) and reads $$ as $.
std::string Literal(absl::string_view text) { return absl::StrReplaceAll(text, {{"$", "$$"}}); }

using Writing = std::string (*)(absl::string_view);
// For the template of a TFJob, which is not final: the operator fills in a native job's
// placeholders and escapes the result (FillIn).
std::string AsItIs(absl::string_view text) { return std::string(text); }

Object EnvList(const std::map<std::string, std::string>& env, Writing write) {
  Object list = Object::array();
  for (const auto& [name, value] : env) list.push_back({{"name", name}, {"value", write(value)}});
  return list;
}

Object WordList(const std::vector<std::string>& words, Writing write) {
  Object list = Object::array();
  for (const std::string& word : words) list.push_back(write(word));
  return list;
}

// Returns Kubernetes' canonical form, so that applying a manifest twice changes nothing.
std::string CpuQuantity(double cpus) {
  const auto milli = static_cast<int64_t>(std::ceil(cpus * 1000));
  return milli % 1000 == 0 ? absl::StrCat(milli / 1000) : absl::StrCat(milli, "m");
}

std::string MemoryQuantity(int64_t bytes) {
  size_t unit = 0;
  constexpr std::array<const char*, 5> kUnits = {"", "Ki", "Mi", "Gi", "Ti"};
  while (unit + 1 < kUnits.size() && bytes > 0 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return absl::StrCat(bytes, kUnits.at(unit));
}

Object ResourceList(const job::Resources& resources) {
  Object limits = Object::object();
  if (resources.cpus) limits["cpu"] = CpuQuantity(*resources.cpus);
  if (resources.memory_bytes) limits["memory"] = MemoryQuantity(*resources.memory_bytes);
  if (resources.gpus) limits["nvidia.com/gpu"] = absl::StrCat(*resources.gpus);
  if (limits.empty()) return nullptr;
  return {{"requests", limits}, {"limits", limits}};
}

// Returns true for a pod of Muster's that runs as an unprivileged user on a read-only file system.
// An image of the user's in a rendered cluster keeps its user and its file system.
bool IsRestricted(const job::JobSpec& spec, const job::RoleSpec& role) {
  if (!role.pod.is_null()) return false;
  if (spec.format != job::JobFormat::kRenderedCluster) return true;
  const bool asked = spec.kubernetes.is_object() && spec.kubernetes.value("restricted", false);
  return asked || role.server == job::Server::kTrainer;
}

// The user has no home in the image, and the image's file system is read-only.
void AddFolders(std::map<std::string, std::string>& env) {
  env.emplace("HOME", kScratchFolder);
  env.emplace("MUSTER_CACHE", absl::StrCat(kScratchFolder, "/muster"));
}

// Returns the launch of a role as written, before values of a task are filled in.
job::TaskLaunch RoleLaunch(const job::JobSpec& spec, const job::RoleSpec& role) {
  job::TaskLaunch launch{.argv = role.command, .env = spec.env, .working_dir = role.working_dir};
  if (MountsTfServer(spec, role)) launch.argv = TfServerCommand();
  if (launch.argv.empty()) launch.argv = {kTrainer};
  for (const auto& [name, value] : role.env) launch.env[name] = value;
  if (!spec.train.is_null()) launch.env["MUSTER_TRAIN_CONFIG"] = kTrainPath;
  if (HasTls(spec)) launch.env["MUSTER_TLS_DIR"] = kTlsFolder;
  if (IsRestricted(spec, role)) AddFolders(launch.env);
  return launch;
}

absl::StatusOr<std::string> ImageOf(const job::JobSpec& spec, const job::RoleSpec& role,
                                    const PodOptions& options) {
  if (!role.image.empty()) return role.image;
  if (role.command.empty() &&
      (!spec.train.is_null() || spec.format == job::JobFormat::kRenderedCluster)) {
    return options.trainer_image;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("role '", role.name, "' has no image; set 'image' for it or for the whole job"));
}

SecurityOptions SecurityOf(const job::JobSpec& spec, const job::RoleSpec& role) {
  if (!IsRestricted(spec, role)) return {};
  return {.restricted = true, .user = kUser, .read_only_root = true};
}

// Merges as RFC 7396 does, except that lists are appended: an additional volume removes none.
void Merge(Object& target, const nlohmann::json& fragment) {
  if (!target.is_object()) target = Object::object();
  for (const auto& [key, value] : fragment.items()) {
    if (value.is_null()) {
      target.erase(key);
    } else if (value.is_object()) {
      Merge(target[key], value);
    } else if (value.is_array() && target.contains(key) && target[key].is_array()) {
      for (const auto& item : value) target[key].push_back(Object(item));
    } else {
      target[key] = Object(value);
    }
  }
}

void MergeFragment(Object& target, const nlohmann::json& fragments, const char* which) {
  if (fragments.is_object() && fragments.contains(which)) Merge(target, fragments[which]);
}

// Rejects paths of this machine, which do not exist in a pod unless a volume is mounted there.
absl::Status CheckPaths(const job::JobSpec& spec, const Object& container) {
  if (spec.train.is_null()) return absl::OkStatus();
  std::vector<std::pair<std::string, std::string>> paths = {{"model_dir", spec.model_dir}};
  const auto data = spec.train.value("data", nlohmann::json::object());
  if (const auto path = data.find("path"); path != data.end() && path->is_string()) {
    paths.emplace_back("'path' of data", path->get<std::string>());
  } else if (path != data.end() && path->is_object()) {
    for (const auto& [split, of_split] : path->items()) {
      paths.emplace_back(absl::StrCat("'path' of data for ", split), of_split.get<std::string>());
    }
  }
  // The name of a built-in model has no slash.
  const std::string model = spec.train.value("model", "");
  if (absl::StartsWith(model, "/")) paths.emplace_back("'model' of train", model);
  for (const auto& [what, path] : paths) {
    if (path.empty() || absl::StrContains(path, "://")) continue;
    const Object mounts = container.value("volumeMounts", Object::array());
    const bool mounted = std::any_of(mounts.begin(), mounts.end(), [&path = path](const Object& m) {
      const std::string at = m.value("mountPath", "");
      return path == at || absl::StartsWith(path, absl::StrCat(at, "/"));
    });
    if (mounted) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        what, " is ", path, ", a path of this machine, which pods do not see; use a ", "URL (",
        base::RemoteSchemes(), "), or mount a volume there (docs/kubernetes.md)"));
  }
  return absl::OkStatus();
}

// Adds the variables from which the server in the image of a rendered cluster derives its task.
void AddPodIdentity(Object& env) {
  const std::pair<const char*, const char*> fields[] = {{"POD_NAME", "metadata.name"},
                                                        {"POD_NAMESPACE", "metadata.namespace"}};
  for (const auto& [name, path] : fields) {
    env.push_back({{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}});
  }
}

// Names within a pod, and how text is escaped.
struct Form {
  std::string container;
  std::string port;
  Writing write;
};

absl::StatusOr<Object> OwnContainer(const job::JobSpec& spec, const job::RoleSpec& role,
                                    const job::TaskLaunch& launch, const PodOptions& options,
                                    const Form& form) {
  MUSTER_ASSIGN_OR_RETURN(const std::string image, ImageOf(spec, role, options));
  Object container = {{"name", form.container}, {"image", image}};
  const bool own_server = role.server == job::Server::kTensorFlow && !MountsTfServer(spec, role);
  if (own_server) {
    container["args"] = {"--job-config", form.write(JobConfigLiteral(spec))};
  } else {
    container["command"] = WordList(launch.argv, form.write);
  }
  if (!role.working_dir.empty()) container["workingDir"] = launch.working_dir;
  container["env"] = EnvList(launch.env, form.write);
  if (spec.format == job::JobFormat::kRenderedCluster) AddPodIdentity(container["env"]);
  container["ports"] = {{{"name", form.port}, {"containerPort", PortOf(role)}}};
  if (Object resources = ResourceList(role.resources); !resources.is_null()) {
    container["resources"] = std::move(resources);
  }
  container["securityContext"] = ContainerSecurity(SecurityOf(spec, role));
  container["volumeMounts"] = {{{"name", "run"}, {"mountPath", kRunFolder}}};
  if (IsRestricted(spec, role)) {
    container["volumeMounts"].push_back({{"name", "scratch"}, {"mountPath", kScratchFolder}});
  }
  if (!spec.train.is_null()) {
    container["volumeMounts"].push_back(
        {{"name", "config"}, {"mountPath", kConfigFolder}, {"readOnly", true}});
  }
  if (HasTls(spec)) {
    container["volumeMounts"].push_back(
        {{"name", "tls"}, {"mountPath", kTlsFolder}, {"readOnly", true}});
  }
  MergeFragment(container, spec.kubernetes, "container");
  MergeFragment(container, role.kubernetes, "container");
  MUSTER_RETURN_IF_ERROR(CheckPaths(spec, container));
  return container;
}

absl::StatusOr<Object> OwnTemplate(const job::JobSpec& spec, const job::RoleSpec& role,
                                   const job::TaskLaunch& launch, const PodOptions& options,
                                   const Form& form) {
  MUSTER_ASSIGN_OR_RETURN(Object container, OwnContainer(spec, role, launch, options, form));
  Object pod = {{"containers", Object::array()},
                {"automountServiceAccountToken", false},
                {"enableServiceLinks", false},
                {"securityContext", PodSecurity(SecurityOf(spec, role))},
                {"volumes", {{{"name", "run"}, {"emptyDir", Object::object()}}}}};
  if (IsRestricted(spec, role)) {
    pod["volumes"].push_back({{"name", "scratch"}, {"emptyDir", Object::object()}});
  }
  if (MountsTfServer(spec, role)) AddTfServer(spec, pod, container);
  if (MountsWorkFiles(options.files, role)) {
    AddWorkFiles(spec, options.files, role.working_dir, pod, container);
  }
  pod["containers"].push_back(std::move(container));
  if (!spec.train.is_null()) {
    pod["volumes"].push_back({{"name", "config"}, {"configMap", {{"name", ConfigName(spec)}}}});
  }
  if (HasTls(spec)) {
    pod["volumes"].push_back({{"name", "tls"}, {"secret", {{"secretName", TlsName(spec)}}}});
  }
  MergeFragment(pod, spec.kubernetes, "pod");
  MergeFragment(pod, role.kubernetes, "pod");
  return Object{{"metadata", Object::object()}, {"spec", std::move(pod)}};
}

// Returns true if `list`, whose items are {name, …}, contains `name`.
bool HasNamed(const Object& list, absl::string_view name) {
  return list.is_array() && std::any_of(list.begin(), list.end(), [&](const Object& item) {
           return item.is_object() && item.value("name", "") == name;
         });
}

// Sets every variable of the launch and a command without placeholders in a native job's container.
// Preserves the other variables of the template.
void FillIn(const job::TaskLaunch& launch, Object& container) {
  Object env = EnvList(launch.env, Literal);
  for (const Object& entry : container.value("env", Object::array())) {
    if (!launch.env.contains(entry.value("name", ""))) env.push_back(entry);
  }
  container["env"] = std::move(env);
  container["command"] = WordList(launch.argv, Literal);
  container.erase("args");
}

void AddTfConfig(const job::TaskLaunch& launch, Object& container) {
  const auto tf_config = launch.env.find("TF_CONFIG");
  if (tf_config == launch.env.end()) return;
  Object& env = container["env"];
  if (!env.is_array()) env = Object::array();
  if (HasNamed(env, "TF_CONFIG")) return;
  env.push_back({{"name", "TF_CONFIG"}, {"value", Literal(tf_config->second)}});
}

// Adds the missing variables and the port to the container to which TFJob's rules apply.
Object ManifestTemplate(const job::JobSpec& spec, const job::RoleSpec& role,
                        const job::TaskLaunch& launch) {
  Object pod = Object(role.pod);
  for (Object& container : pod["spec"]["containers"]) {
    if (container.value("name", "") != job::kTensorflowContainer) continue;
    if (spec.format == job::JobFormat::kNative) {
      FillIn(launch, container);
    } else {
      AddTfConfig(launch, container);
    }
    if (MountsTfServer(spec, role)) AddTfServer(spec, pod["spec"], container);
    Object& ports = container["ports"];
    if (!ports.is_array()) ports = Object::array();
    if (!HasNamed(ports, PortName(spec))) {
      ports.push_back({{"name", PortName(spec)}, {"containerPort", PortOf(role)}});
    }
    break;
  }
  return pod;
}

}  // namespace

std::string ConfigName(const job::JobSpec& spec) { return absl::StrCat(spec.name, "-config"); }
std::string TlsName(const job::JobSpec& spec) { return absl::StrCat(spec.name, "-tls"); }

bool HasTls(const job::JobSpec& spec) {
  const bool trains =
      !spec.train.is_null() ||
      std::any_of(spec.roles.begin(), spec.roles.end(),
                  [](const job::RoleSpec& role) { return role.server == job::Server::kTrainer; });
  return trains && spec.Tasks().size() > 1;
}

absl::StatusOr<job::TaskLaunch> PodLaunch(const job::JobSpec& spec,
                                          const cluster::ClusterSpec& cluster,
                                          const cluster::TaskId& task, const PodOptions& options) {
  const job::RoleSpec& role = *spec.FindRole(task.role);
  job::LaunchContext context{
      .job_id = options.job_id,
      .working_dir = MountsWorkFiles(options.files, role) ? kWorkFolder : "/",
      .trainer = kTrainer,
      .python = TfServerCommand().front(),
      .tf_server = TfServerPath(),
      .train_config = kTrainPath,
      .run_dir = kRunFolder,
      .tls_dir = HasTls(spec) ? kTlsFolder : ""};
  if (role.resources.cpus) {
    context.cpus = std::max(1, static_cast<int>(std::floor(*role.resources.cpus)));
  } else {
    context.user_set_omp = true;  // the node, and its number of processors, is not known yet
  }
  auto launch = job::BuildTaskLaunch(spec, cluster, task, context);
  if (launch.ok() && IsRestricted(spec, role)) AddFolders(launch->env);
  return launch;
}

absl::StatusOr<Object> PodTemplate(const job::JobSpec& spec, const cluster::ClusterSpec& cluster,
                                   const cluster::TaskId& task, const PodOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const job::TaskLaunch launch, PodLaunch(spec, cluster, task, options));
  const job::RoleSpec& role = *spec.FindRole(task.role);
  Object pod;
  if (role.pod.is_null()) {
    const Form form{
        .container = spec.format == job::JobFormat::kNative ? "task" : job::kTensorflowContainer,
        .port = std::string(PortName(spec)),
        .write = Literal};
    MUSTER_ASSIGN_OR_RETURN(pod, OwnTemplate(spec, role, launch, options, form));
  } else {
    pod = ManifestTemplate(spec, role, launch);
  }
  Object& labels = pod["metadata"]["labels"];
  if (!labels.is_object()) labels = Object::object();
  for (const auto& [name, value] : LabelsOf(spec, task)) labels[name] = value;
  return pod;
}

absl::StatusOr<Object> RoleTemplate(const job::JobSpec& spec, const job::RoleSpec& role,
                                    const PodOptions& options) {
  Object pod = Object(role.pod);
  if (pod.is_null()) {
    MUSTER_ASSIGN_OR_RETURN(pod, OwnTemplate(spec, role, RoleLaunch(spec, role), options,
                                             {.container = job::kTensorflowContainer,
                                              .port = job::kTfJobPortName,
                                              .write = AsItIs}));
  }
  if (!role.pod.is_null() && MountsTfServer(spec, role)) {
    for (Object& container : pod["spec"]["containers"]) {
      if (container.value("name", "") != job::kTensorflowContainer) continue;
      AddTfServer(spec, pod["spec"], container);
    }
  }
  if (role.pod.is_null()) {
    pod["spec"]["terminationGracePeriodSeconds"] =
        absl::ToInt64Seconds(absl::Ceil(spec.policies.stop_grace, absl::Seconds(1)));
  }
  // The job's NetworkPolicy selects pods by these labels, whichever operator creates them.
  pod["metadata"]["labels"][kJobLabel] = spec.name;
  pod["metadata"]["labels"][kRoleLabel] = role.name;
  return pod;
}

}  // namespace muster::manifest
