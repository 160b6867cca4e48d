#include "platform/local/platform.h"

#include <unistd.h>

#include "base/status_macros.h"
#include "platform/local/addresses.h"
#include "platform/local/launch.h"
#include "platform/local/preflight.h"
#include "supervise/job_dir.h"

namespace muster::local {

LocalPlatform::LocalPlatform(platform::Traits traits, std::string program, std::string home)
    : SupervisedPlatform(std::move(traits), std::move(program)), home_(std::move(home)) {}

std::vector<platform::Limit> LocalPlatform::Unsupported(const job::Submission& submission) const {
  std::vector<platform::Limit> limits = SupervisedPlatform::Unsupported(submission);
  platform::AddHostLimits(submission.spec, limits);
  const absl::Status here = CheckAddresses(submission.spec);
  if (!here.ok()) limits.push_back({.what = std::string(here.message()), .fatal = true});
  return limits;
}

absl::Status LocalPlatform::Prepare(job::Submission& submission) {
  submission.target = job::LocalTarget();
  return absl::OkStatus();
}

absl::StatusOr<cluster::ClusterSpec> LocalPlatform::Addresses(
    const job::Submission& submission) const {
  return PlanAddresses(submission.spec, {});
}

absl::StatusOr<job::TaskLaunch> LocalPlatform::LaunchOf(const job::Submission& submission,
                                                        const cluster::ClusterSpec& cluster,
                                                        const cluster::TaskId& task) const {
  return local::LaunchOf(supervise::JobDir::Of(home_, submission.id), submission, cluster, task, 0,
                         0);
}

absl::StatusOr<std::vector<platform::Finding>> LocalPlatform::CheckJob(
    const job::Submission& submission, bool thorough) {
  return local::CheckJob(supervise::JobDir::Of(home_, submission.id), submission, thorough);
}

std::vector<platform::Machine> LocalPlatform::Machines(const job::JobRecord& /*job*/,
                                                       const std::vector<job::TaskRecord>& tasks) {
  std::vector<platform::Machine> machines = platform::MachinesOf(tasks);
  const int64_t memory = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  for (platform::Machine& machine : machines) {
    machine.provider = name();
    machine.size = platform::DescribeSize(UsableCpus(), memory);
  }
  return machines;
}

absl::Status LocalPlatform::Submit(const job::Submission& submission,
                                   const job::JobRecord& record) {
  const supervise::JobDir dir(record.directory);
  MUSTER_RETURN_IF_ERROR(dir.SaveSubmission(submission));
  return StartSupervisor(dir);
}

absl::StatusOr<supervise::UpdatePlan> LocalPlatform::PlanChange(const supervise::JobDir& dir,
                                                                const job::Submission& current,
                                                                const cluster::ClusterSpec& cluster,
                                                                const job::Submission& next) const {
  return local::PlanUpdate(dir, current, cluster, next);
}

}  // namespace muster::local
