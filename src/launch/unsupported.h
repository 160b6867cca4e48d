// Words for what a platform does not do of what a job asks for.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "job/job_spec.h"

namespace muster {

// "role 'worker': resources: the machine decides".
inline std::string NotOfRole(const RoleSpec& role, absl::string_view field,
                             absl::string_view instead) {
  return absl::StrCat("role '", role.name, "': ", field, ": ", instead);
}

inline constexpr char kForKubernetesAlone[] = "it is for Kubernetes alone";
inline constexpr char kForHostsAlone[] = "hosts: they are for --on ssh alone";
inline constexpr char kNoNotebook[] =
    "notebook: none is started; `muster notebook` is for jobs on Kubernetes";
inline constexpr char kOnlyContainer[] =
    "of a pod only the container's command and variables are taken";

}  // namespace muster
