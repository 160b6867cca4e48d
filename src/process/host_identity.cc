#include "process/host_identity.h"

#include <sys/utsname.h>

#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/files.h"
#include "process/tree.h"

namespace muster::process {
namespace {

std::string ReadLine(const std::string& path) {
  const std::string text = base::ReadFile(path).value_or("");
  return std::string(absl::StripSuffix(text, "\n"));
}

// The parts of a host identity; unknown ones are empty.
struct Host {
  std::string machine;
  std::string boot;
  std::string pid_namespace;
  std::string name;  // also empty if an earlier version of Muster wrote the identity
};

Host Parse(absl::string_view text) {
  std::vector<std::string> parts = absl::StrSplit(text, '/');
  parts.resize(4);
  return {.machine = parts[0], .boot = parts[1], .pid_namespace = parts[2], .name = parts[3]};
}

// Returns true if both are known and equal.
bool Match(const std::string& a, const std::string& b) { return !a.empty() && a == b; }

// Returns true if both are the same boot of the same kernel and the same pid namespace. The boot id
// is random, so it suffices, and a host name may change meanwhile. Sandboxes without a boot id are
// compared by machine id and name.
bool IsSame(const Host& here, const Host& there) {
  if (!Match(here.pid_namespace, there.pid_namespace)) return false;
  if (!here.boot.empty() || !there.boot.empty()) return here.boot == there.boot;
  return Match(here.machine, there.machine) && Match(here.name, there.name);
}

// Returns true if `here` is the machine of `there` after a reboot. Cloned machines share a machine
// id, so their names must match too. Without a machine id the answer is false.
bool HasRestarted(const Host& here, const Host& there) {
  const bool same_name = there.name.empty() || here.name == there.name;
  return Match(here.machine, there.machine) && same_name && !here.boot.empty() &&
         !there.boot.empty() && here.boot != there.boot;
}

std::string MachineId() {
  const std::string id = ReadLine("/etc/machine-id");
  return id == "uninitialized" ? "" : id;  // set by systemd until the first boot is complete
}

}  // namespace

std::string ThisHost() {
  std::error_code error;
  const std::string pids = std::filesystem::read_symlink("/proc/self/ns/pid", error).string();
  utsname name{};
  ::uname(&name);
  return absl::StrCat(MachineId(), "/", ReadLine("/proc/sys/kernel/random/boot_id"), "/", pids, "/",
                      absl::StrReplaceAll(name.nodename, {{"/", "-"}}));
}

Existence FindProcessFrom(absl::string_view host, const ProcessIdentity& identity) {
  const Host ours = Parse(host);
  const Host theirs = Parse(identity.host);
  if (HasRestarted(ours, theirs)) return Existence::kEnded;
  if (!IsSame(ours, theirs)) return Existence::kUnknown;
  const auto now = ReadProcess(identity.pid);
  const bool is_it = now.ok() && !now->zombie && now->start_ticks == identity.start_ticks;
  return is_it ? Existence::kAlive : Existence::kEnded;
}

}  // namespace muster::process
