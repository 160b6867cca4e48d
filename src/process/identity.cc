#include "process/identity.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "process/host_identity.h"
#include "process/tree.h"

namespace muster::process {

absl::StatusOr<ProcessIdentity> IdentifyProcess(pid_t pid) {
  MUSTER_ASSIGN_OR_RETURN(const ProcessInfo info, ReadProcess(pid));
  if (info.zombie) return absl::NotFoundError(absl::StrCat("process ", pid, " has ended"));
  return ProcessIdentity{.pid = pid, .start_ticks = info.start_ticks, .host = ThisHost()};
}

Existence FindProcess(const ProcessIdentity& identity) {
  return FindProcessFrom(ThisHost(), identity);
}

}  // namespace muster::process
