// What must hold of a job in whatever form it was written. Every check reports what is wrong,
// where, and what was expected.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "codec/diagnostics.h"
#include "job/job_spec.h"

namespace muster {

inline constexpr int kLastPort = 65535;

inline constexpr char kNameRule[] =
    "lower-case letters, digits and '-', a letter or digit at both ends, at most 63 characters";

// A DNS label, as kNameRule says.
bool IsLabel(absl::string_view name);
void CheckJobName(absl::string_view name, codec::Mark mark, codec::Diagnostics& diagnostics);
void CheckRoleName(absl::string_view name, codec::Mark mark, codec::Diagnostics& diagnostics);
void CheckEnvName(absl::string_view name, codec::Mark mark, codec::Diagnostics& diagnostics);

// A path made absolute against `working_dir`, or a URL of a scheme that Muster stores to. "" after
// a diagnostic. `what` names it in messages: "'model_dir'".
std::string ResolveStorage(absl::string_view path, absl::string_view working_dir,
                           absl::string_view what, codec::Mark mark,
                           codec::Diagnostics& diagnostics);

// Where the roles stand in the file.
struct RolePlaces {
  codec::Mark all;
  std::vector<codec::Mark> each;  // as many as the job has roles
};

// The rules between roles: one leader, one evaluator, somebody who trains (unless Kubeflow asks for
// nobody), limits, addresses, and a task that decides success.
void CheckRoles(const JobSpec& spec, const RolePlaces& places, codec::Diagnostics& diagnostics);

}  // namespace muster
