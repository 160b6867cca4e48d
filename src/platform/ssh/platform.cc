#include "platform/ssh/platform.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/storage_schemes.h"
#include "base/variables.h"
#include "platform/ssh/launch.h"
#include "platform/ssh/placement.h"
#include "platform/ssh/provision.h"
#include "storage/url.h"
#include "worktree/credentials.h"

namespace muster::ssh {
namespace {

// Returns the hosts from the command line, else those of the job file.
absl::StatusOr<std::vector<job::HostSpec>> HostsOf(const job::Submission& submission) {
  const std::string& given = job::TargetOf<job::SshTarget>(submission).hosts;
  if (!given.empty()) return job::ParseHosts(given);
  if (!submission.spec.hosts.empty()) return submission.spec.hosts;
  return absl::InvalidArgumentError(
      "missing hosts; list them with --hosts vm1,vm2:4, or under `hosts` in the job file");
}

// Returns a warning if model_dir may differ between hosts, else "".
std::string LocalPathWarning(const job::JobSpec& spec) {
  if (spec.model_dir.empty() || storage::IsRemote(spec.model_dir)) return "";
  return absl::StrCat(
      spec.model_dir,
      " is a local path: each host has its own folder there, unless they share a file "
      "system; use a URL (",
      base::RemoteSchemes(), ") for a shared one");
}

}  // namespace

SshPlatform::SshPlatform(platform::Traits traits, platform::Environment environment)
    : SupervisedPlatform(std::move(traits), environment.program),
      environment_(std::move(environment)) {}

std::vector<platform::Limit> SshPlatform::Unsupported(const job::Submission& submission) const {
  const job::JobSpec& spec = submission.spec;
  std::vector<platform::Limit> limits = SupervisedPlatform::Unsupported(submission);
  const std::string many = LocalPathWarning(spec);
  const auto hosts = HostsOf(submission);
  if (!many.empty() && spec.Tasks().size() > 1 && (!hosts.ok() || hosts->size() > 1)) {
    limits.push_back({.what = absl::StrCat("model_dir: ", many)});
  }
  return limits;
}

absl::Status SshPlatform::Prepare(job::Submission& submission) {
  MUSTER_RETURN_IF_ERROR(worktree::CheckSendable(submission, base::ProcessVariables()));
  // A running or resumed job has an assignment already; its tasks stay on their hosts if possible.
  const job::HostAssignment before = job::TargetOf<job::SshTarget>(submission).assignment;
  std::map<std::string, job::AssignedHost> known;
  for (const job::AssignedHost& host : before.hosts) known[host.spec.name] = host;
  MUSTER_ASSIGN_OR_RETURN(const std::vector<job::HostSpec> hosts, HostsOf(submission));
  MUSTER_ASSIGN_OR_RETURN(const auto placed, Place(submission.spec, hosts, before.holder));
  job::HostAssignment assignment{.agent = before.agent};
  for (const auto& [task, index] : placed) assignment.holder[task] = hosts[index].name;
  for (size_t i = 0; i < hosts.size(); ++i) {
    const bool used = std::any_of(placed.begin(), placed.end(),
                                  [i](const auto& task) { return task.second == i; });
    if (!used && !known.contains(hosts[i].name)) continue;
    job::AssignedHost host = known[hosts[i].name];
    host.spec = hosts[i];
    if (host.address.empty()) {
      MUSTER_ASSIGN_OR_RETURN(host.address, PeerAddress(hosts[i]));
    }
    assignment.hosts.push_back(std::move(host));
  }
  assignment.tls = placed.size() > 1;
  job::MutableTargetOf<job::SshTarget>(submission).assignment = std::move(assignment);
  return absl::OkStatus();
}

absl::StatusOr<cluster::ClusterSpec> SshPlatform::Addresses(
    const job::Submission& submission) const {
  MUSTER_ASSIGN_OR_RETURN(const job::HostAssignment assignment, AssignmentOf(submission));
  return PlanAddresses(submission.spec, assignment, {});
}

absl::StatusOr<job::TaskLaunch> SshPlatform::LaunchOf(const job::Submission& submission,
                                                      const cluster::ClusterSpec& cluster,
                                                      const cluster::TaskId& task) const {
  MUSTER_ASSIGN_OR_RETURN(const job::HostAssignment assignment, AssignmentOf(submission));
  return ssh::LaunchOf(submission, assignment, cluster, task, 0, 0);
}

absl::StatusOr<ProvisionOptions> SshPlatform::MakeProvisionOptions() const {
  MUSTER_ASSIGN_OR_RETURN(platform::AgentProgram agent,
                          platform::FindAgentProgram(environment_.program));
  return ProvisionOptions{.agent = std::move(agent),
                          .home = environment_.home,
                          .notice = environment_.notify,
                          .interrupted = environment_.interrupted};
}

absl::Status SshPlatform::Update(const job::JobRecord& job, const job::Submission& next) {
  MUSTER_ASSIGN_OR_RETURN(const job::Submission current,
                          supervise::JobDir(job.directory).LoadSubmission());
  worktree::Version before, after;
  const std::string &old_id = current.version.program, &new_id = next.version.program;
  if (!old_id.empty() && !new_id.empty() && old_id != new_id) {
    const worktree::VersionStore versions(supervise::JobDir(job.directory).versions());
    MUSTER_ASSIGN_OR_RETURN(before, versions.Load(old_id));
    MUSTER_ASSIGN_OR_RETURN(after, versions.Load(new_id));
  }
  const WorkEdit edit = EditBetween(before, after);
  if (current.spec.train == next.spec.train && edit.empty()) {
    return SupervisedPlatform::Update(job, next);
  }
  MUSTER_ASSIGN_OR_RETURN(const ProvisionOptions provision, MakeProvisionOptions());
  MUSTER_ASSIGN_OR_RETURN(const job::HostAssignment assignment, AssignmentOf(next));
  bool touched = false;
  absl::Status changed = SendChanges(next, assignment, edit, provision, touched);
  if (changed.ok()) changed = SupervisedPlatform::Update(job, next);
  if (changed.ok() || !touched) return changed;
  // The job runs on with the old version, so its hosts must have the old files again. Their
  // contents are still there.
  const absl::Status undone =
      SendChanges(current, assignment, EditBetween(after, before), provision, touched);
  if (undone.ok()) return changed;
  return base::Annotate(changed, absl::StrCat("hosts may have edited files that the job was not ",
                                              "changed to (", undone.message(), "); run it again"));
}

absl::StatusOr<std::vector<platform::Finding>> SshPlatform::CheckTarget(const job::Target& target) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<job::HostSpec> hosts,
                          job::ParseHosts(std::get<job::SshTarget>(target).hosts));
  MUSTER_ASSIGN_OR_RETURN(const auto agent, platform::FindAgentProgram(environment_.program));
  std::vector<platform::Finding> findings;
  for (const HostFinding& finding : Examine(hosts, agent)) {
    findings.push_back({finding.status.ok() ? platform::Grade::kOk : platform::Grade::kMissing,
                        finding.host, finding.detail});
  }
  return findings;
}

std::vector<platform::Machine> SshPlatform::Machines(const job::JobRecord& job,
                                                     const std::vector<job::TaskRecord>& tasks) {
  std::vector<platform::Machine> machines = platform::MachinesOf(tasks);
  const auto submission = supervise::JobDir(job.directory).LoadSubmission();
  if (!submission.ok()) return machines;
  const job::HostAssignment& assignment = job::TargetOf<job::SshTarget>(*submission).assignment;
  for (platform::Machine& machine : machines) {
    machine.provider = name();
    for (const job::AssignedHost& host : assignment.hosts) {
      if (host.spec.name != machine.name) continue;
      machine.public_ip = host.address;
      machine.size = platform::DescribeSize(host.cpus);
    }
  }
  return machines;
}

absl::Status SshPlatform::Submit(const job::Submission& submission, const job::JobRecord& record) {
  MUSTER_ASSIGN_OR_RETURN(const ProvisionOptions provision, MakeProvisionOptions());
  MUSTER_ASSIGN_OR_RETURN(job::HostAssignment assignment, AssignmentOf(submission));
  MUSTER_RETURN_IF_ERROR(ProvisionHosts(submission, assignment, provision));
  job::Submission complete = submission;
  job::MutableTargetOf<job::SshTarget>(complete).assignment = std::move(assignment);
  const supervise::JobDir dir(record.directory);
  MUSTER_RETURN_IF_ERROR(dir.SaveSubmission(complete));
  return StartSupervisor(dir);
}

absl::StatusOr<supervise::UpdatePlan> SshPlatform::PlanChange(const supervise::JobDir& /*dir*/,
                                                              const job::Submission& current,
                                                              const cluster::ClusterSpec& cluster,
                                                              const job::Submission& next) const {
  return ssh::PlanUpdate(current, cluster, next);
}

}  // namespace muster::ssh
