#include "process/identity.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "process/tree.h"

namespace muster {

absl::StatusOr<ProcessIdentity> IdentifyProcess(pid_t pid) {
  MUSTER_ASSIGN_OR_RETURN(const ProcessInfo info, ReadProcess(pid));
  if (info.zombie) return absl::NotFoundError(absl::StrCat("process ", pid, " has ended"));
  MUSTER_ASSIGN_OR_RETURN(std::string boot_id, ReadFile("/proc/sys/kernel/random/boot_id"));
  return ProcessIdentity{
      .pid = pid,
      .start_ticks = info.start_ticks,
      .boot_id = std::string(absl::StripSuffix(boot_id, "\n")),
  };
}

bool IsAlive(const ProcessIdentity& identity) {
  const auto now = IdentifyProcess(identity.pid);
  return now.ok() && *now == identity;
}

}  // namespace muster
