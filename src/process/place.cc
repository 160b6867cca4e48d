#include "process/place.h"

#include <sys/utsname.h>

#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "process/tree.h"

namespace muster {
namespace {

std::string Line(const std::string& path) {
  const std::string text = ReadFile(path).value_or("");
  return std::string(absl::StripSuffix(text, "\n"));
}

// The parts of a place; those that it does not have are empty.
struct Place {
  std::string machine;
  std::string boot;
  std::string pids;
  std::string host;  // empty too in what versions before this one wrote
};

Place Parse(absl::string_view text) {
  std::vector<std::string> parts = absl::StrSplit(text, '/');
  parts.resize(4);
  return {.machine = parts[0], .boot = parts[1], .pids = parts[2], .host = parts[3]};
}

bool AreOne(const std::string& a, const std::string& b) { return !a.empty() && a == b; }

// One kernel since its start, and one view of its processes. A boot id is random, so it is enough
// to tell machines apart, and a host name may change meanwhile; sandboxes that have none need the
// rest.
bool IsHere(const Place& here, const Place& there) {
  if (!AreOne(here.pids, there.pids)) return false;
  if (!here.boot.empty() || !there.boot.empty()) return here.boot == there.boot;
  return AreOne(here.machine, there.machine) && AreOne(here.host, there.host);
}

// The machine of `there`, started anew since. Cloned machines share an id, so their names must not
// differ; without an id it cannot be told.
bool HasRestarted(const Place& here, const Place& there) {
  const bool named_alike = there.host.empty() || here.host == there.host;
  return AreOne(here.machine, there.machine) && named_alike && !here.boot.empty() &&
         !there.boot.empty() && here.boot != there.boot;
}

std::string MachineId() {
  const std::string id = Line("/etc/machine-id");
  return id == "uninitialized" ? "" : id;  // systemd's, until the first start is over
}

}  // namespace

std::string ThisPlace() {
  std::error_code error;
  const std::string pids = std::filesystem::read_symlink("/proc/self/ns/pid", error).string();
  utsname name{};
  ::uname(&name);
  return absl::StrCat(MachineId(), "/", Line("/proc/sys/kernel/random/boot_id"), "/", pids, "/",
                      absl::StrReplaceAll(name.nodename, {{"/", "-"}}));
}

Existence FindFrom(absl::string_view here, const ProcessIdentity& identity) {
  const Place ours = Parse(here);
  const Place theirs = Parse(identity.place);
  if (HasRestarted(ours, theirs)) return Existence::kEnded;
  if (!IsHere(ours, theirs)) return Existence::kUnknown;
  const auto now = ReadProcess(identity.pid);
  const bool is_it = now.ok() && !now->zombie && now->start_ticks == identity.start_ticks;
  return is_it ? Existence::kAlive : Existence::kEnded;
}

}  // namespace muster
