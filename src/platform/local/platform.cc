#include "platform/local/platform.h"

#include <signal.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "platform/local/addresses.h"
#include "platform/local/launch.h"
#include "process/tree.h"
#include "supervise/job_dir.h"

namespace muster::local {
namespace {

constexpr absl::Duration kKillTimeout = absl::Seconds(5);

}  // namespace

std::vector<Limit> LocalPlatform::Unsupported(const Submission& submission) const {
  std::vector<Limit> limits = SupervisedPlatform::Unsupported(submission);
  AddHostLimits(submission.spec, limits);
  const absl::Status here = CheckAddresses(submission.spec);
  if (!here.ok()) limits.push_back({.what = std::string(here.message()), .fatal = true});
  return limits;
}

absl::Status LocalPlatform::Prepare(Submission& submission) {
  submission.target = LocalTarget();
  return absl::OkStatus();
}

absl::StatusOr<ClusterSpec> LocalPlatform::Addresses(const Submission& submission) const {
  return PlanAddresses(submission.spec, {});
}

absl::StatusOr<TaskLaunch> LocalPlatform::LaunchOf(const Submission& submission,
                                                   const ClusterSpec& cluster,
                                                   const TaskId& task) const {
  return local::LaunchOf(JobDir::Of(home_, submission.id), submission, cluster, task, 0, 0);
}

absl::Status LocalPlatform::Submit(const Submission& submission, const JobRecord& record) {
  const JobDir dir(record.directory);
  MUSTER_RETURN_IF_ERROR(dir.SaveSubmission(submission));
  return StartSupervisor(dir);
}

absl::StatusOr<UpdatePlan> LocalPlatform::PlanChange(const JobDir& dir, const Submission& current,
                                                     const ClusterSpec& cluster,
                                                     const Submission& next) const {
  return local::PlanUpdate(dir, current, cluster, next);
}

int KillLeftovers(const std::string& job_id) {
  const std::string mark = absl::StrCat("MUSTER_JOB_ID=", job_id);
  std::set<pid_t> killed;
  const absl::Time give_up = absl::Now() + kKillTimeout;
  // Repeats until none is left: a process that is being started, or forked meanwhile, appears late.
  for (;;) {
    const std::vector<ProcessInfo> left = ProcessesWithEnvironment(mark);
    if (left.empty() || absl::Now() > give_up) return static_cast<int>(killed.size());
    for (const ProcessInfo& process : left) {
      SignalProcess(process, SIGKILL);
      killed.insert(process.pid);
    }
    absl::SleepFor(absl::Milliseconds(2));  // a killed process takes a moment to disappear
  }
}

}  // namespace muster::local
