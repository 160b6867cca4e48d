#include "manifest/tensorboard.h"

#include "k8s/resource.h"
#include "manifest/security.h"

namespace muster::manifest {
namespace {

using Object = nlohmann::ordered_json;

constexpr int kPort = 6006;

std::string ImageOf(const job::JobSpec& spec, const std::string& default_image) {
  for (const char* path : {"/tensorboard/image", "/tfImage"}) {
    if (std::string image = k8s::TextAt(spec.kubernetes, path); !image.empty()) return image;
  }
  return default_image;
}

}  // namespace

const nlohmann::json* TensorboardOf(const job::JobSpec& spec) {
  return k8s::Find(spec.kubernetes, "/tensorboard");
}

Object TensorboardPod(const job::JobSpec& spec, const std::string& default_image) {
  const nlohmann::json& section = *TensorboardOf(spec);
  Object container = {
      {"name", kTensorboard},
      {"image", ImageOf(spec, default_image)},
      {"command",
       {"tensorboard", "--logdir", k8s::TextAt(section, "/logDir"), "--host", "0.0.0.0"}},
      {"ports", {{{"name", "http"}, {"containerPort", kPort}}}},
      {"securityContext", ContainerSecurity({})}};
  Object pod = {{"restartPolicy", "Always"},
                {"automountServiceAccountToken", false},
                {"enableServiceLinks", false}};
  if (const auto mounts = section.find("volumeMounts");
      mounts != section.end() && mounts->is_array()) {
    container["volumeMounts"] = Object(*mounts);
  }
  if (const auto volumes = section.find("volumes");
      volumes != section.end() && volumes->is_array()) {
    pod["volumes"] = Object(*volumes);
  }
  pod["containers"] = Object::array({std::move(container)});
  return pod;
}

Object TensorboardService(const job::JobSpec& spec, const Object& selector) {
  const std::string type = k8s::TextAt(*TensorboardOf(spec), "/serviceType");
  return {{"type", type.empty() ? "ClusterIP" : type},
          {"selector", selector},
          {"ports", {{{"name", "http"}, {"port", 80}, {"targetPort", kPort}}}}};
}

}  // namespace muster::manifest
