#include "manifest/notebook.h"

#include <random>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/bytes/digest.h"
#include "cluster/tf_config.h"
#include "manifest/images.h"
#include "manifest/names.h"
#include "manifest/security.h"

namespace muster::manifest {
namespace {

constexpr int kNotebookPort = 8888;
constexpr int kTensorBoardPort = 6006;
constexpr char kHashKey[] = "password-hash";
constexpr char kHashVariable[] = "NOTEBOOK_PASSWORD_HASH";

constexpr char kLogsVolume[] = "logs";
constexpr char kLogsFolder[] = "/logs";

bool IsRendered(const job::JobSpec& spec) {
  return spec.format == job::JobFormat::kRenderedCluster;
}

bool HasPassword(const job::JobSpec& spec) { return !spec.notebook.value("password", "").empty(); }

Object PasswordSecret(const job::JobSpec& spec, const NotebookOptions& options,
                      const Object& metadata) {
  const std::string hash = PasswordHash(spec.notebook.value("password", ""), options.salt);
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata", metadata},
          {"type", "Opaque"},
          {"data", {{kHashKey, absl::Base64Escape(hash)}}}};
}

// Returns true unless the image is the user's and the file does not ask for a restricted pod: such
// an image keeps its user.
bool IsRestricted(const job::JobSpec& spec, const NotebookOptions& options) {
  const bool asked = spec.kubernetes.is_object() && spec.kubernetes.value("restricted", false);
  return !IsRendered(spec) || asked || options.image == kNotebookImage;
}

// Returns a list of the job's `kubernetes` section: volumes, or where containers mount them.
Object Fragments(const job::JobSpec& spec, const char* section, const char* key) {
  if (!spec.kubernetes.is_object() || !spec.kubernetes.contains(section)) return Object::array();
  const auto found = spec.kubernetes[section].find(key);
  return found != spec.kubernetes[section].end() && found->is_array() ? Object(*found)
                                                                      : Object::array();
}

// Returns the folder that TensorBoard shows, and to which programs of the notebook write.
std::string LogsOf(const job::JobSpec& spec) {
  return spec.model_dir.empty() ? kLogsFolder : spec.model_dir;
}

// The two containers share the job's own volumes, and a folder of their own if it has no model dir.
Object SharedMounts(const job::JobSpec& spec) {
  Object mounts = Fragments(spec, "container", "volumeMounts");
  if (spec.model_dir.empty()) {
    mounts.push_back({{"name", kLogsVolume}, {"mountPath", kLogsFolder}});
  }
  return mounts;
}

Object SharedVolumes(const job::JobSpec& spec) {
  Object volumes = Fragments(spec, "pod", "volumes");
  if (spec.model_dir.empty()) {
    volumes.push_back({{"name", kLogsVolume}, {"emptyDir", Object::object()}});
  }
  return volumes;
}

Object Container(const char* name, const std::string& image, int port,
                 std::vector<std::string> command) {
  return {{"name", name},
          {"image", image},
          {"command", std::move(command)},
          {"ports", {{{"name", name}, {"protocol", "TCP"}, {"containerPort", port}}}}};
}

// Programs of the notebook are clients of the cluster, so TF_CONFIG has no task.
Object NotebookVariables(const job::JobSpec& spec, const NotebookOptions& options) {
  Object env = Object::array();
  if (!options.cluster.empty()) {
    const std::string config =
        cluster::WriteTfConfig({.cluster = options.cluster, .environment = "cloud"});
    env.push_back({{"name", "TF_CONFIG"}, {"value", config}});
    env.push_back({{"name", "CLUSTER_CONFIG"}, {"value", Object::parse(config)["cluster"].dump()}});
  }
  env.push_back({{"name", "MUSTER_MODEL_DIR"}, {"value", LogsOf(spec)}});
  if (HasPassword(spec)) {
    env.push_back(
        {{"name", kHashVariable},
         {"valueFrom", {{"secretKeyRef", {{"name", NotebookName(spec)}, {"key", kHashKey}}}}}});
  }
  return env;
}

Object NotebookPod(const job::JobSpec& spec, const NotebookOptions& options, int port) {
  Object notebook =
      Container("notebook", options.image, port,
                {"jupyter", "lab", "--ip=0.0.0.0", absl::StrCat("--port=", port), "--no-browser"});
  notebook["env"] = NotebookVariables(spec, options);
  // Kubernetes expands $(NAME), so the hash is stored in the Secret only.
  if (HasPassword(spec)) {
    notebook["command"].push_back(absl::StrCat("--ServerApp.password=$(", kHashVariable, ")"));
  }
  Object board = Container("tensorboard", options.image, kTensorBoardPort,
                           {"tensorboard", absl::StrCat("--logdir=", LogsOf(spec)), "--bind_all",
                            absl::StrCat("--port=", kTensorBoardPort)});
  const SecurityOptions security{.restricted = IsRestricted(spec, options)};
  for (Object* container : {&notebook, &board}) {
    (*container)["securityContext"] = ContainerSecurity(security);
    if (Object mounts = SharedMounts(spec); !mounts.empty()) {
      (*container)["volumeMounts"] = std::move(mounts);
    }
  }
  Object pod = {{"automountServiceAccountToken", false},
                {"securityContext", PodSecurity(security)},
                {"containers", Object::array({std::move(notebook), std::move(board)})}};
  if (Object volumes = SharedVolumes(spec); !volumes.empty()) pod["volumes"] = std::move(volumes);
  return pod;
}

}  // namespace

std::string NotebookName(const job::JobSpec& spec) {
  return spec.format == job::JobFormat::kRenderedCluster ? "jupyter"
                                                         : absl::StrCat(spec.name, "-notebook");
}

std::string RandomSalt() {
  std::random_device random;
  return absl::StrFormat("%08x%08x", random(), random());
}

std::string PasswordHash(absl::string_view password, absl::string_view salt) {
  return absl::StrCat("sha256:", salt, ":", base::Sha256Hex(absl::StrCat(password, salt)));
}

std::vector<Object> Notebook(const job::JobSpec& spec, const NotebookOptions& options) {
  const std::string name = NotebookName(spec);
  const Object selector = {{kJobLabel, spec.name}, {"muster/notebook", name}};
  const Object metadata = {
      {"name", name}, {"namespace", options.kubernetes_namespace}, {"labels", selector}};
  std::vector<Object> objects;
  if (HasPassword(spec)) objects.push_back(PasswordSecret(spec, options, metadata));
  const int port = spec.notebook.value("port", kNotebookPort);
  objects.push_back(
      {{"apiVersion", "v1"},
       {"kind", "Service"},
       {"metadata", metadata},
       {"spec",
        {{"type", IsRendered(spec) ? "LoadBalancer" : "ClusterIP"},
         {"selector", selector},
         {"ports",
          {{{"name", "notebook"}, {"protocol", "TCP"}, {"port", port}},
           {{"name", "tensorboard"}, {"protocol", "TCP"}, {"port", kTensorBoardPort}}}}}}});
  objects.push_back(
      {{"apiVersion", "apps/v1"},
       {"kind", "Deployment"},
       {"metadata", metadata},
       {"spec",
        {{"replicas", 1},
         {"strategy", {{"type", "Recreate"}}},
         {"selector", {{"matchLabels", selector}}},
         {"template",
          {{"metadata", {{"labels", selector}}}, {"spec", NotebookPod(spec, options, port)}}}}}});
  return objects;
}

}  // namespace muster::manifest
