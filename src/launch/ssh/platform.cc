#include "launch/ssh/platform.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/variables.h"
#include "launch/credentials.h"
#include "launch/ssh/place.h"
#include "launch/ssh/placement.h"
#include "launch/ssh/ready.h"
#include "launch/update.h"
#include "storage/url.h"

namespace muster::ssh {
namespace {

// Those that were named on the command line, else those of the job file.
absl::StatusOr<std::vector<HostSpec>> HostsOf(const Submission& submission) {
  const bool said = submission.place.is_object() && submission.place.contains("--hosts");
  if (said) return ParseHosts(submission.place["--hosts"].get<std::string>());
  if (!submission.spec.hosts.empty()) return submission.spec.hosts;
  return absl::InvalidArgumentError(
      "which hosts? Name them with --hosts vm1,vm2:4, or under `hosts` in the job file");
}

// "" when all hosts find the same under that name, as far as is known here.
std::string ManyPlaces(const JobSpec& spec) {
  if (spec.model_dir.empty() || storage::IsRemote(spec.model_dir)) return "";
  return absl::StrCat(spec.model_dir,
                      " is a path: every host has a folder of its own there, unless it is one that "
                      "they share; a URL (gs://, s3://, hdfs://) is the same place for all");
}

// A path of this machine is taken as it is written, and what is home there is not known here.
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
  // Of a job that runs, or that is resumed, it is known where its tasks are.
  const JobPlace before = JobPlace::FromJson(submission.place);
  std::map<std::string, PlacedHost> known;
  for (const PlacedHost& host : before.hosts) known[host.spec.name] = host;
  MUSTER_ASSIGN_OR_RETURN(const std::vector<HostSpec> hosts, HostsOf(submission));
  MUSTER_ASSIGN_OR_RETURN(const auto placed, Place(submission.spec, hosts, before.holder));
  JobPlace place{.agent = before.agent};
  for (const auto& [task, index] : placed) place.holder[task] = hosts[index].name;
  for (size_t i = 0; i < hosts.size(); ++i) {
    const bool used = std::any_of(placed.begin(), placed.end(),
                                  [i](const auto& task) { return task.second == i; });
    if (!used && !known.contains(hosts[i].name)) continue;
    PlacedHost host = known[hosts[i].name];
    host.spec = hosts[i];
    if (host.address.empty()) {
      MUSTER_ASSIGN_OR_RETURN(host.address, PeerAddress(hosts[i]));
    }
    place.hosts.push_back(std::move(host));
  }
  place.tls = placed.size() > 1;
  const nlohmann::json said = submission.place;
  submission.place = place.ToJson();
  if (said.is_object() && said.contains("--hosts")) submission.place["--hosts"] = said["--hosts"];
  return absl::OkStatus();
}

std::string SshPlatform::Describe(const Submission& submission) const {
  const auto place = JobPlace::Of(submission);
  if (!place.ok()) return "on hosts";
  return absl::StrCat(
      "on ", absl::StrJoin(place->hosts, ", ", [](std::string* out, const PlacedHost& host) {
        absl::StrAppend(out, host.spec.name);
      }));
}

absl::StatusOr<ClusterSpec> SshPlatform::Addresses(const Submission& submission) const {
  MUSTER_ASSIGN_OR_RETURN(const JobPlace place, JobPlace::Of(submission));
  return PlanAddresses(submission.spec, place, {});
}

absl::StatusOr<TaskLaunch> SshPlatform::LaunchOf(const Submission& submission,
                                                 const ClusterSpec& cluster,
                                                 const TaskId& task) const {
  MUSTER_ASSIGN_OR_RETURN(const JobPlace place, JobPlace::Of(submission));
  return ssh::LaunchOf(submission, place, cluster, task, 0, 0);
}

absl::StatusOr<ReadyOptions> SshPlatform::MakeReadyOptions() const {
  MUSTER_ASSIGN_OR_RETURN(AgentProgram agent, AgentProgram::Find(options_.program));
  return ReadyOptions{.agent = std::move(agent),
                      .home = options_.home,
                      .notice = options_.notice,
                      .interrupted = options_.interrupted};
}

absl::Status SshPlatform::Update(const JobRecord& job, const Submission& next) {
  MUSTER_ASSIGN_OR_RETURN(const Submission current, JobDir(job.directory).LoadSubmission());
  if (current.spec.train != next.spec.train) {
    MUSTER_ASSIGN_OR_RETURN(const ReadyOptions ready, MakeReadyOptions());
    MUSTER_ASSIGN_OR_RETURN(const JobPlace place, JobPlace::Of(next));
    MUSTER_RETURN_IF_ERROR(SendTrainSection(next, place, ready));
  }
  return SupervisedPlatform::Update(job, next);
}

absl::Status SshPlatform::Submit(const Submission& submission, const JobRecord& record) {
  MUSTER_ASSIGN_OR_RETURN(const ReadyOptions ready, MakeReadyOptions());
  MUSTER_ASSIGN_OR_RETURN(JobPlace place, JobPlace::Of(submission));
  MUSTER_RETURN_IF_ERROR(MakeReady(submission, place, ready));
  Submission complete = submission;
  complete.place.update(place.ToJson());
  const JobDir dir(record.directory);
  MUSTER_RETURN_IF_ERROR(dir.SaveSubmission(complete));
  return StartSupervisor(dir);
}

absl::StatusOr<UpdatePlan> SshPlatform::PlanChange(const JobDir& /*dir*/, const Submission& current,
                                                   const ClusterSpec& cluster,
                                                   const Submission& next) const {
  MUSTER_ASSIGN_OR_RETURN(const JobPlace place, JobPlace::Of(next));
  return muster::PlanUpdate(
      current, cluster, next, PlanAddresses(next.spec, place, cluster),
      [this](const Submission& submission, const ClusterSpec& addresses, const TaskId& task) {
        return LaunchOf(submission, addresses, task);
      });
}

}  // namespace muster::ssh
