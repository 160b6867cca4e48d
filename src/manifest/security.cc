#include "manifest/security.h"

namespace muster::manifest {

using Object = nlohmann::ordered_json;

Object PodSecurity(const SecurityOptions& options) {
  Object security = Object::object();
  if (options.restricted) security["runAsNonRoot"] = true;
  if (options.user) {
    for (const char* field : {"runAsUser", "runAsGroup", "fsGroup"}) {
      security[field] = *options.user;
    }
  }
  security["seccompProfile"] = {{"type", "RuntimeDefault"}};
  return security;
}

Object ContainerSecurity(const SecurityOptions& options) {
  Object security = {{"allowPrivilegeEscalation", false}};
  if (options.read_only_root) security["readOnlyRootFilesystem"] = true;
  if (options.restricted) security["capabilities"] = {{"drop", {"ALL"}}};
  return security;
}

}  // namespace muster::manifest
