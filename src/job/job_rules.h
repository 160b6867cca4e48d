// Rules that hold for a job in every file format. Each check reports the mistake, its position and
// the expected form to `diagnostics`.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "codec/diagnostics.h"
#include "job/job_spec.h"

namespace muster::job {

inline constexpr int kLastPort = 65535;

inline constexpr char kNameRule[] =
    "lower-case letters, digits and '-', a letter or digit at both ends, at most 63 characters";

// Returns true if the name is a DNS label, as described by kNameRule.
bool IsLabel(absl::string_view name);
void CheckJobName(absl::string_view name, codec::Mark mark, codec::Diagnostics& diagnostics);
void CheckRoleName(absl::string_view name, codec::Mark mark, codec::Diagnostics& diagnostics);
void CheckEnvName(absl::string_view name, codec::Mark mark, codec::Diagnostics& diagnostics);

enum class Schemes {
  kSupported,  // those of base/storage_schemes.h
  kAny,
};

// Returns `path` resolved against `working_dir`, or unchanged if it is a URL with one of these
// schemes. Returns "" after a diagnostic. `what` names the value in messages: "'model_dir'".
std::string ResolveStorage(absl::string_view path, absl::string_view working_dir,
                           absl::string_view what, codec::Mark mark,
                           codec::Diagnostics& diagnostics, Schemes schemes = Schemes::kSupported);

// Positions of the roles in the file.
struct RolePlaces {
  codec::Mark all;
  std::vector<codec::Mark> each;  // one per role of the job
};

// Checks the rules between roles: at most one leader and one evaluator, at least one task that
// trains (except in a TFJob, which may run servers only, and in a rendered cluster, which has only
// servers), the limits, the addresses, and a task
// that decides success.
void CheckRoles(const JobSpec& spec, const RolePlaces& places, codec::Diagnostics& diagnostics);

}  // namespace muster::job
