// The fields of a job that a platform ignores or rejects. `muster explain` prints this list and
// `muster run` applies it.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "job/job_spec.h"

namespace muster::platform {

struct Limit {
  std::string what;    // one line: the field and what happens instead
  bool fatal = false;  // the job cannot run on the platform
};

// Formats the limit of a role: "role 'worker': resources: the machine decides".
std::string RoleLimit(const job::RoleSpec& role, absl::string_view field,
                      absl::string_view instead);

// Adds the fields of the job and its policies that apply to Kubernetes only, except
// `role.kubernetes` and `role.pod`. Fields of a manifest are listed by their own keys.
void AddKubernetesLimits(const job::JobSpec& spec, std::vector<Limit>& limits);
// Adds the roles that run the entry point of their image, for platforms that need a command.
void AddEntryPointLimits(const job::JobSpec& spec, std::vector<Limit>& limits);
// Adds the fields that apply to `--on ssh` only.
void AddHostLimits(const job::JobSpec& spec, std::vector<Limit>& limits);
// Adds `policies.backoff` and `policies.max_backoff` if they differ from the defaults, for
// platforms where Muster does not time the restarts of single tasks.
void AddBackoffLimit(const job::JobSpec& spec, absl::string_view instead,
                     std::vector<Limit>& limits);

inline constexpr char kForKubernetesAlone[] = "used only on Kubernetes";
inline constexpr char kOnlyContainer[] = "only the command and variables of the container are used";

}  // namespace muster::platform
