#include "platform/ssh/platform.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/variables.h"
#include "platform/ssh/launch.h"
#include "platform/ssh/placement.h"
#include "platform/ssh/provision.h"
#include "storage/url.h"
#include "supervise/update.h"
#include "worktree/credentials.h"

namespace muster::ssh {
namespace {

// Returns the hosts from the command line, else those of the job file.
absl::StatusOr<std::vector<HostSpec>> HostsOf(const Submission& submission) {
  const std::string& given = TargetOf<SshTarget>(submission).hosts;
  if (!given.empty()) return ParseHosts(given);
  if (!submission.spec.hosts.empty()) return submission.spec.hosts;
  return absl::InvalidArgumentError(
      "which hosts? Name them with --hosts vm1,vm2:4, or under `hosts` in the job file");
}

// Returns a warning if model_dir may differ between hosts, else "".
std::string ManyPlaces(const JobSpec& spec) {
  if (spec.model_dir.empty() || storage::IsRemote(spec.model_dir)) return "";
  return absl::StrCat(spec.model_dir,
                      " is a path: every host has a folder of its own there, unless it is one that "
                      "they share; a URL (gs://, s3://, hdfs://) is the same place for all");
}

// '~' is not expanded: model_dir is passed on as written, and the home directories of hosts are not
// known here.
absl::Status CheckModelDir(const Submission& submission) {
  const std::string home = JoinPath(submission.working_dir, "~");
  const std::string& path = submission.spec.model_dir;
  if (path != home && !absl::StartsWith(path, absl::StrCat(home, "/"))) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "model_dir: '~' is not known to mean the same on every host; write the path out, or a URL");
}

}  // namespace

std::vector<Limit> SshPlatform::Unsupported(const Submission& submission) const {
  const JobSpec& spec = submission.spec;
  std::vector<Limit> limits = SupervisedPlatform::Unsupported(submission);
  const std::string many = ManyPlaces(spec);
  const auto hosts = HostsOf(submission);
  if (!many.empty() && spec.Tasks().size() > 1 && (!hosts.ok() || hosts->size() > 1)) {
    limits.push_back({.what = absl::StrCat("model_dir: ", many)});
  }
  return limits;
}

absl::Status SshPlatform::Prepare(Submission& submission) {
  MUSTER_RETURN_IF_ERROR(CheckModelDir(submission));
  MUSTER_RETURN_IF_ERROR(CheckSendable(submission, ProcessVariables()));
  // A running or resumed job has an assignment already; its tasks stay on their hosts if possible.
  const HostAssignment before = TargetOf<SshTarget>(submission).assignment;
  std::map<std::string, AssignedHost> known;
  for (const AssignedHost& host : before.hosts) known[host.spec.name] = host;
  MUSTER_ASSIGN_OR_RETURN(const std::vector<HostSpec> hosts, HostsOf(submission));
  MUSTER_ASSIGN_OR_RETURN(const auto placed, Place(submission.spec, hosts, before.holder));
  HostAssignment assignment{.agent = before.agent};
  for (const auto& [task, index] : placed) assignment.holder[task] = hosts[index].name;
  for (size_t i = 0; i < hosts.size(); ++i) {
    const bool used = std::any_of(placed.begin(), placed.end(),
                                  [i](const auto& task) { return task.second == i; });
    if (!used && !known.contains(hosts[i].name)) continue;
    AssignedHost host = known[hosts[i].name];
    host.spec = hosts[i];
    if (host.address.empty()) {
      MUSTER_ASSIGN_OR_RETURN(host.address, PeerAddress(hosts[i]));
    }
    assignment.hosts.push_back(std::move(host));
  }
  assignment.tls = placed.size() > 1;
  MutableTargetOf<SshTarget>(submission).assignment = std::move(assignment);
  return absl::OkStatus();
}

std::string SshPlatform::Describe(const Submission& submission) const {
  const auto assignment = AssignmentOf(submission);
  if (!assignment.ok()) return "on hosts";
  return absl::StrCat(
      "on ", absl::StrJoin(assignment->hosts, ", ", [](std::string* out, const AssignedHost& host) {
        absl::StrAppend(out, host.spec.name);
      }));
}

absl::StatusOr<ClusterSpec> SshPlatform::Addresses(const Submission& submission) const {
  MUSTER_ASSIGN_OR_RETURN(const HostAssignment assignment, AssignmentOf(submission));
  return PlanAddresses(submission.spec, assignment, {});
}

absl::StatusOr<TaskLaunch> SshPlatform::LaunchOf(const Submission& submission,
                                                 const ClusterSpec& cluster,
                                                 const TaskId& task) const {
  MUSTER_ASSIGN_OR_RETURN(const HostAssignment assignment, AssignmentOf(submission));
  return ssh::LaunchOf(submission, assignment, cluster, task, 0, 0);
}

absl::StatusOr<ProvisionOptions> SshPlatform::MakeProvisionOptions() const {
  MUSTER_ASSIGN_OR_RETURN(AgentProgram agent, AgentProgram::Find(options_.program));
  return ProvisionOptions{.agent = std::move(agent),
                          .home = options_.home,
                          .notice = options_.notice,
                          .interrupted = options_.interrupted};
}

absl::Status SshPlatform::Update(const JobRecord& job, const Submission& next) {
  MUSTER_ASSIGN_OR_RETURN(const Submission current, JobDir(job.directory).LoadSubmission());
  if (current.spec.train != next.spec.train) {
    MUSTER_ASSIGN_OR_RETURN(const ProvisionOptions provision, MakeProvisionOptions());
    MUSTER_ASSIGN_OR_RETURN(const HostAssignment assignment, AssignmentOf(next));
    MUSTER_RETURN_IF_ERROR(SendTrainSection(next, assignment, provision));
  }
  return SupervisedPlatform::Update(job, next);
}

absl::Status SshPlatform::Submit(const Submission& submission, const JobRecord& record) {
  MUSTER_ASSIGN_OR_RETURN(const ProvisionOptions provision, MakeProvisionOptions());
  MUSTER_ASSIGN_OR_RETURN(HostAssignment assignment, AssignmentOf(submission));
  MUSTER_RETURN_IF_ERROR(ProvisionHosts(submission, assignment, provision));
  Submission complete = submission;
  MutableTargetOf<SshTarget>(complete).assignment = std::move(assignment);
  const JobDir dir(record.directory);
  MUSTER_RETURN_IF_ERROR(dir.SaveSubmission(complete));
  return StartSupervisor(dir);
}

absl::StatusOr<UpdatePlan> SshPlatform::PlanChange(const JobDir& /*dir*/, const Submission& current,
                                                   const ClusterSpec& cluster,
                                                   const Submission& next) const {
  MUSTER_ASSIGN_OR_RETURN(const HostAssignment assignment, AssignmentOf(next));
  return muster::PlanUpdate(
      current, cluster, next, PlanAddresses(next.spec, assignment, cluster),
      [this](const Submission& submission, const ClusterSpec& addresses, const TaskId& task) {
        return LaunchOf(submission, addresses, task);
      });
}

}  // namespace muster::ssh
