#include "platform/ssh/launch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "cluster/address.h"
#include "platform/platform.h"
#include "supervise/job_dir.h"
#include "supervise/update.h"

namespace muster::ssh {
namespace {

std::string FixedAddress(const job::JobSpec& spec, const job::HostAssignment& assignment,
                         const cluster::TaskId& task) {
  const job::RoleSpec& role = *spec.FindRole(task.role);
  if (!role.addresses.empty()) return role.addresses[static_cast<size_t>(task.index)];
  if (!role.port.has_value() || spec.format != job::JobFormat::kNative) return "";
  // Tasks of a role on the same host need distinct ports.
  int port = *role.port;
  for (int i = 0; i < task.index; ++i) {
    if (assignment.HostOf({task.role, i}).spec.name == assignment.HostOf(task).spec.name) ++port;
  }
  return cluster::MakeAddress(assignment.HostOf(task).address, port);
}

// Returns the number of tasks that share the host's cores. Service roles are mostly idle.
int ComputingTasksOn(const job::JobSpec& spec, const job::HostAssignment& assignment,
                     const std::string& host) {
  const std::vector<cluster::TaskId> tasks = spec.Tasks();
  const auto count = std::count_if(tasks.begin(), tasks.end(), [&](const cluster::TaskId& task) {
    return !job::IsServiceRole(task.role) && assignment.HostOf(task).spec.name == host;
  });
  return std::max(1, static_cast<int>(count));
}

}  // namespace

absl::StatusOr<job::HostAssignment> AssignmentOf(const job::Submission& submission) {
  const job::HostAssignment& assignment = job::TargetOf<job::SshTarget>(submission).assignment;
  for (const cluster::TaskId& task : submission.spec.Tasks()) {
    const auto holder = assignment.holder.find(task);
    const bool known = holder != assignment.holder.end() &&
                       std::any_of(assignment.hosts.begin(), assignment.hosts.end(),
                                   [&](const job::AssignedHost& host) {
                                     return host.spec.name == holder->second;
                                   });
    if (!known) return absl::DataLossError("the job's hosts are not recorded");
  }
  return assignment;
}

bool IsPicked(const job::JobSpec& spec, const cluster::TaskId& task) {
  const job::RoleSpec* role = spec.FindRole(task.role);
  if (role == nullptr) return false;
  return role->addresses.empty() &&
         (!role->port.has_value() || spec.format != job::JobFormat::kNative);
}

cluster::ClusterSpec PlanAddresses(const job::JobSpec& spec, const job::HostAssignment& assignment,
                                   const cluster::ClusterSpec& current) {
  cluster::ClusterSpec cluster;
  for (const cluster::TaskId& task : spec.Tasks()) {
    std::string address = FixedAddress(spec, assignment, task);
    if (address.empty()) {
      const std::string now(current.AddressOf(task));
      const auto parsed = cluster::ParseAddress(now);
      const bool stays = parsed.has_value() && parsed->host == assignment.HostOf(task).address;
      address = stays ? now : platform::kUnassigned;
    }
    cluster.Set(task, address);
  }
  return cluster;
}

absl::StatusOr<job::TaskLaunch> LaunchOf(const job::Submission& submission,
                                         const job::HostAssignment& assignment,
                                         const cluster::ClusterSpec& cluster,
                                         const cluster::TaskId& task, int attempt, int restarts) {
  const job::AssignedHost& host = assignment.HostOf(task);
  const supervise::JobDir dir(host.folder.empty() ? absl::StrCat("~/.cache/muster/jobs/",
                                                                 submission.id, "@", host.spec.name)
                                                  : host.folder);
  const job::LaunchContext context{
      .job_id = submission.id,
      .working_dir = base::JoinPath(dir.path(), "work"),
      .trainer = host.trainer.empty() ? "muster-trainer" : host.trainer,
      .tf_server = dir.tf_server(),
      .train_config = dir.train_config(),
      .run_dir = dir.run_dir(task),
      .tls_dir = assignment.tls ? base::JoinPath(dir.path(), "tls") : "",
      .attempt = attempt,
      .restart_count = restarts,
      .cpus = host.cpus,
      .tasks_on_host = ComputingTasksOn(submission.spec, assignment, host.spec.name),
      .resumed = !submission.resumed_from.empty(),
      .resume_step = submission.resume_step,
  };
  return job::BuildTaskLaunch(submission.spec, cluster, task, context);
}

absl::StatusOr<supervise::UpdatePlan> PlanUpdate(const job::Submission& current,
                                                 const cluster::ClusterSpec& cluster,
                                                 const job::Submission& next) {
  MUSTER_ASSIGN_OR_RETURN(const job::HostAssignment next_hosts, AssignmentOf(next));
  return supervise::PlanUpdate(
      current, cluster, next, PlanAddresses(next.spec, next_hosts, cluster),
      [](const job::Submission& submission, const cluster::ClusterSpec& addresses,
         const cluster::TaskId& task) -> absl::StatusOr<job::TaskLaunch> {
        MUSTER_ASSIGN_OR_RETURN(const job::HostAssignment hosts, AssignmentOf(submission));
        return LaunchOf(submission, hosts, addresses, task, 0, 0);
      });
}

}  // namespace muster::ssh
