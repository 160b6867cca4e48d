#include "platform/machine.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/units.h"
#include "supervise/runner.h"

namespace muster::platform {

std::vector<Machine> MachinesOf(const std::vector<job::TaskRecord>& tasks) {
  struct Host {
    std::set<std::string> roles;
    bool silent = false;
    bool busy = false;
  };
  std::map<std::string, Host> hosts;
  for (const job::TaskRecord& task : tasks) {
    if (task.host.empty()) continue;
    Host& host = hosts[task.host];
    host.roles.insert(task.id.role);
    host.silent |= absl::EndsWith(task.reason, supervise::kHostUnreachable);
    host.busy |= !job::IsFinal(task.state);
  }
  std::vector<Machine> machines;
  for (const auto& [name, host] : hosts) {
    machines.push_back({.name = name,
                        .roles = absl::StrJoin(host.roles, ", "),
                        .status = host.silent ? kMachineUnreachable
                                  : host.busy ? kMachineConnected
                                              : kMachineReleased});
  }
  return machines;
}

std::string DescribeSize(int cpus, int64_t memory_bytes) {
  const std::string memory =
      memory_bytes > 0 ? absl::StrCat(", ", base::FormatBytes(memory_bytes)) : "";
  return absl::StrCat(base::Plural(cpus, "cpu"), memory);
}

}  // namespace muster::platform
