#include "manifest/notebook.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "manifest/names.h"

namespace muster::manifest {
namespace {

constexpr int kNotebookPort = 8888;
constexpr int kTensorBoardPort = 6006;
constexpr char kHashKey[] = "password-hash";
constexpr char kHashVariable[] = "NOTEBOOK_PASSWORD_HASH";

Object Container(const char* name, const std::string& image, int port,
                 std::vector<std::string> command) {
  return {{"name", name},
          {"image", image},
          {"command", std::move(command)},
          {"ports", {{{"name", name}, {"protocol", "TCP"}, {"containerPort", port}}}},
          {"securityContext", RestrictedContainer()}};
}

}  // namespace

std::string NotebookName(const JobSpec& spec) {
  return spec.format == JobFormat::kRenderedCluster ? "jupyter"
                                                    : absl::StrCat(spec.name, "-notebook");
}

std::string PasswordHash(absl::string_view password, absl::string_view salt) {
  return absl::StrCat("sha256:", salt, ":", Sha256Hex(absl::StrCat(password, salt)));
}

std::vector<Object> Notebook(const JobSpec& spec, const NotebookOptions& options) {
  const std::string name = NotebookName(spec);
  const int port = spec.notebook.value("port", kNotebookPort);
  const Object selector = {{kJobLabel, spec.name}, {"muster/notebook", name}};
  const Object metadata = {
      {"name", name}, {"namespace", options.kubernetes_namespace}, {"labels", selector}};
  std::vector<Object> objects;
  Object notebook =
      Container("notebook", options.image, port,
                {"jupyter", "lab", "--ip=0.0.0.0", absl::StrCat("--port=", port), "--no-browser"});
  if (const std::string password = spec.notebook.value("password", ""); !password.empty()) {
    objects.push_back(
        {{"apiVersion", "v1"},
         {"kind", "Secret"},
         {"metadata", metadata},
         {"type", "Opaque"},
         {"data", {{kHashKey, absl::Base64Escape(PasswordHash(password, options.salt))}}}});
    notebook["env"] = {{{"name", kHashVariable},
                        {"valueFrom", {{"secretKeyRef", {{"name", name}, {"key", kHashKey}}}}}}};
    // Kubernetes expands $(NAME), so the hash is stored in the Secret only.
    notebook["command"].push_back(absl::StrCat("--ServerApp.password=$(", kHashVariable, ")"));
  }
  Object containers = Object::array({std::move(notebook)});
  Object ports = Object::array({{{"name", "notebook"}, {"protocol", "TCP"}, {"port", port}}});
  const std::string logs = spec.model_dir.empty() ? "/tmp" : spec.model_dir;
  containers.push_back(Container("tensorboard", options.image, kTensorBoardPort,
                                 {"tensorboard", absl::StrCat("--logdir=", logs), "--bind_all",
                                  absl::StrCat("--port=", kTensorBoardPort)}));
  ports.push_back({{"name", "tensorboard"}, {"protocol", "TCP"}, {"port", kTensorBoardPort}});
  const bool balanced = spec.format == JobFormat::kRenderedCluster;
  objects.push_back({{"apiVersion", "v1"},
                     {"kind", "Service"},
                     {"metadata", metadata},
                     {"spec",
                      {{"type", balanced ? "LoadBalancer" : "ClusterIP"},
                       {"selector", selector},
                       {"ports", std::move(ports)}}}});
  objects.push_back({{"apiVersion", "apps/v1"},
                     {"kind", "Deployment"},
                     {"metadata", metadata},
                     {"spec",
                      {{"replicas", 1},
                       {"strategy", {{"type", "Recreate"}}},
                       {"selector", {{"matchLabels", selector}}},
                       {"template",
                        {{"metadata", {{"labels", selector}}},
                         {"spec",
                          {{"automountServiceAccountToken", false},
                           {"securityContext", RestrictedPod()},
                           {"containers", std::move(containers)}}}}}}}});
  return objects;
}

}  // namespace muster::manifest
