#include "process/identity.h"

#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "process/tree.h"

namespace muster {
namespace {

std::string Line(const std::string& path) {
  const std::string text = ReadFile(path).value_or("");
  return std::string(absl::StripSuffix(text, "\n"));
}

std::string ThisPlace() {
  std::error_code error;
  const std::string pids = std::filesystem::read_symlink("/proc/self/ns/pid", error).string();
  return absl::StrCat(Line("/etc/machine-id"), "/", Line("/proc/sys/kernel/random/boot_id"), "/",
                      pids);
}

}  // namespace

absl::StatusOr<ProcessIdentity> IdentifyProcess(pid_t pid) {
  MUSTER_ASSIGN_OR_RETURN(const ProcessInfo info, ReadProcess(pid));
  if (info.zombie) return absl::NotFoundError(absl::StrCat("process ", pid, " has ended"));
  return ProcessIdentity{.pid = pid, .start_ticks = info.start_ticks, .place = ThisPlace()};
}

Existence Find(const ProcessIdentity& identity) {
  const std::string here = ThisPlace();
  if (identity.place != here) {
    const std::vector<std::string> theirs = absl::StrSplit(identity.place, '/');
    const std::vector<std::string> ours = absl::StrSplit(here, '/');
    const bool restarted =
        theirs.size() == ours.size() && theirs[0] == ours[0] && theirs[1] != ours[1];
    return restarted ? Existence::kEnded : Existence::kUnknown;
  }
  const auto now = IdentifyProcess(identity.pid);
  return now.ok() && *now == identity ? Existence::kAlive : Existence::kEnded;
}

}  // namespace muster
