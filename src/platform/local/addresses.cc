#include "platform/local/addresses.h"

#include <set>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cluster/address.h"

namespace muster::local {
namespace {

std::string FixedAddress(const job::JobSpec& spec, const cluster::TaskId& task) {
  const job::RoleSpec& role = *spec.FindRole(task.role);
  if (!role.addresses.empty()) return role.addresses[static_cast<size_t>(task.index)];
  if (role.port.has_value() && spec.format == job::JobFormat::kNative) {
    return absl::StrCat("127.0.0.1:", *role.port + task.index);
  }
  return "";
}

bool IsOnThisMachine(absl::string_view address) {
  for (const char* host : {"127.", "localhost:", "[::1]:", "0.0.0.0:"}) {
    if (absl::StartsWith(address, host)) return true;
  }
  return false;
}

}  // namespace

bool IsPicked(const job::JobSpec& spec, const cluster::TaskId& task) {
  return FixedAddress(spec, task).empty();
}

absl::Status CheckAddresses(const job::JobSpec& spec) {
  for (const cluster::TaskId& task : spec.Tasks()) {
    const std::string address = FixedAddress(spec, task);
    if (address.empty() || IsOnThisMachine(address)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        task.ToString(), ": address ", address,
        " is not on this machine; start that task there manually with the variables that "
        "`muster env` prints, or remove `addresses`"));
  }
  return absl::OkStatus();
}

cluster::ClusterSpec PlanAddresses(const job::JobSpec& spec, const cluster::ClusterSpec& current) {
  cluster::ClusterSpec cluster;
  for (const cluster::TaskId& task : spec.Tasks()) {
    std::string address = FixedAddress(spec, task);
    if (address.empty()) address = std::string(current.AddressOf(task));
    cluster.Set(task, address.empty() ? platform::kUnassigned : address);
  }
  return cluster;
}

std::set<int> PortsOf(const cluster::ClusterSpec& cluster) {
  std::set<int> ports;
  for (const auto& [role, addresses] : cluster.roles()) {
    for (const auto& [index, address] : addresses) ports.insert(cluster::PortOf(address));
  }
  return ports;
}

absl::StatusOr<cluster::ClusterSpec> AssignAddresses(const job::JobSpec& spec,
                                                     const cluster::ClusterSpec& current,
                                                     supervise::PortReservations& ports) {
  MUSTER_RETURN_IF_ERROR(CheckAddresses(spec));
  cluster::ClusterSpec cluster = PlanAddresses(spec, current);
  // Ports that the job holds already. Each may move to another of its tasks, but to one only.
  std::set<int> own = PortsOf(current);
  for (const cluster::TaskId& task : spec.Tasks()) {
    if (cluster.AddressOf(task) == current.AddressOf(task))
      own.erase(cluster::PortOf(cluster.AddressOf(task)));
  }
  std::vector<int> reserved;
  // Undoes the reservations unless all of them succeed.
  absl::Cleanup release = [&] {
    for (const int port : reserved) ports.Release(port);
  };
  for (const cluster::TaskId& task : spec.Tasks()) {
    const std::string address(cluster.AddressOf(task));
    if (address == current.AddressOf(task)) continue;
    if (address == platform::kUnassigned) {
      MUSTER_ASSIGN_OR_RETURN(const int port, ports.Reserve());
      reserved.push_back(port);
      cluster.Set(task, absl::StrCat("127.0.0.1:", port));
      continue;
    }
    const int port = cluster::PortOf(address);
    if (own.erase(port) > 0) continue;
    MUSTER_RETURN_IF_ERROR(base::Annotate(ports.ReserveExactly(port), task.ToString()));
    reserved.push_back(port);
  }
  std::move(release).Cancel();
  return cluster;
}

}  // namespace muster::local
