// What a platform does not do of what a job asks for: the one list that `muster explain` prints and
// `muster run` goes by.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "job/job_spec.h"

namespace muster {

struct Limit {
  std::string what;    // one line: the field, and what happens instead
  bool fatal = false;  // the job cannot run there
};

// "role 'worker': resources: the machine decides".
std::string NotOfRole(const RoleSpec& role, absl::string_view field, absl::string_view instead);

// Fields of the job and of its policies that Kubernetes alone has a use for, `role.kubernetes` and
// `role.pod` excepted. Of a manifest each is named by its own key.
void AddKubernetesLimits(const JobSpec& spec, std::vector<Limit>& limits);
// Fields for `--on ssh` alone.
void AddHostLimits(const JobSpec& spec, std::vector<Limit>& limits);
// `policies` that differ from the defaults and mean nothing where tasks are not restarted one by
// one after a delay of Muster's.
void AddBackoffLimit(const JobSpec& spec, absl::string_view instead, std::vector<Limit>& limits);

inline constexpr char kForKubernetesAlone[] = "it is for Kubernetes alone";
inline constexpr char kOnlyContainer[] =
    "of a pod only the container's command and variables are taken";

}  // namespace muster
