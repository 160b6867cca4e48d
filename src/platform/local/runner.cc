#include "platform/local/runner.h"

#include <unistd.h>

#include <climits>
#include <set>

#include "absl/strings/str_cat.h"
#include "cluster/address.h"
#include "platform/local/addresses.h"
#include "platform/local/launch.h"
#include "process/tree.h"

namespace muster::local {
namespace {

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  ::gethostname(name, HOST_NAME_MAX);
  return name;
}

}  // namespace

LocalRunner::LocalRunner(JobDir dir, const std::string& job_id, EventLoop& loop,
                         RunnerEvents& events)
    : dir_(std::move(dir)),
      host_(HostName()),
      events_(events),
      processes_(dir_, job_id, loop, events) {}

absl::StatusOr<ClusterSpec> LocalRunner::Assign(const Submission& next,
                                                const ClusterSpec& current) {
  return AssignAddresses(next.spec, current, ports_);
}

void LocalRunner::Release(const ClusterSpec& left, const ClusterSpec& kept) {
  const std::set<int> needed = PortsOf(kept);
  for (const int port : PortsOf(left)) {
    if (!needed.contains(port)) ports_.Release(port);
  }
}

std::optional<std::string> LocalRunner::AnotherAddress(const TaskId& /*task*/,
                                                       absl::string_view address) {
  // The new port is reserved before the old one is released, so that it differs.
  const auto port = ports_.Reserve();
  if (!port.ok()) return std::nullopt;
  ports_.Release(PortOf(address));
  return absl::StrCat("127.0.0.1:", *port);
}

bool LocalRunner::IsPicked(const JobSpec& spec, const TaskId& task) const {
  return local::IsPicked(spec, task);
}

absl::StatusOr<TaskLaunch> LocalRunner::LaunchOf(const Submission& submission,
                                                 const ClusterSpec& cluster, const TaskId& task,
                                                 int attempt, int restarts) const {
  return local::LaunchOf(dir_, submission, cluster, task, attempt, restarts);
}

absl::StatusOr<UpdatePlan> LocalRunner::PlanUpdate(const Submission& current,
                                                   const ClusterSpec& cluster,
                                                   const Submission& next) const {
  return local::PlanUpdate(dir_, current, cluster, next);
}

bool LocalRunner::Finish() {
  for (const pid_t pid : KillAllDescendants()) {
    events_.OnNote(
        "job", "",
        absl::StrCat("process ", pid, " could not be ended: it is another user's, or stuck"));
  }
  return true;
}

}  // namespace muster::local
