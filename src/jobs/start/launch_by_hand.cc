#include "jobs/start/launch_by_hand.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "jobs/find/tasks.h"
#include "platform/capabilities.h"
#include "supervise/job_dir.h"

namespace muster::jobs {
namespace {

constexpr int kFirstPort = 2222;

}  // namespace

absl::StatusOr<JobCluster> ClusterBeforeStart(Service& service, job::Submission submission) {
  JobCluster job{.submission = std::move(submission)};
  // Separate invocations, one for each task, must return the same cluster, so the id is not random.
  job.submission.id = job.submission.spec.name;
  MUSTER_ASSIGN_OR_RETURN(platform::Platform * platform,
                          service.platform(std::string(job::PlatformOf(job.submission.target))));
  if (const auto* rendering = platform::CapabilityOf<platform::RenderedJobs>(*platform)) {
    if (auto rendered = rendering->RenderedAddresses(job.submission)) {
      job.cluster = *std::move(rendered);
      return job;
    }
  }
  const platform::Traits& traits = platform->traits();
  if (!traits.assigns_addresses_late) MUSTER_RETURN_IF_ERROR(platform->Prepare(job.submission));
  MUSTER_ASSIGN_OR_RETURN(job.cluster, platform->Addresses(job.submission));
  int port = kFirstPort;
  for (const cluster::TaskId& task : job.submission.spec.Tasks()) {
    if (job.cluster.AddressOf(task) != platform::kUnassigned) continue;
    if (!traits.runs_here) {
      return absl::FailedPreconditionError(
          absl::StrCat(task.ToString(), " gets its address when the job starts on ", traits.title,
                       traits.assigns_addresses_late ? ": " : ": set 'port' of its role, or ",
                       "run the job and give its name instead of the file"));
    }
    job.cluster.Set(task, absl::StrCat("127.0.0.1:", port++));
  }
  return job;
}

absl::StatusOr<JobCluster> ClusterOf(Service& service, const job::JobRecord& job) {
  JobCluster result;
  MUSTER_ASSIGN_OR_RETURN(result.submission, supervise::JobDir(job.directory).LoadSubmission());
  MUSTER_ASSIGN_OR_RETURN(history::History * history, service.history());
  MUSTER_ASSIGN_OR_RETURN(const auto tasks, history->Tasks(job.id));
  for (const job::TaskRecord& task : tasks) result.cluster.Set(task.id, task.address);
  return result;
}

absl::StatusOr<job::TaskLaunch> LaunchByHand(Service& service, const JobCluster& job,
                                             const cluster::TaskId& task,
                                             const std::string& certificates) {
  std::vector<job::TaskRecord> tasks;
  for (const cluster::TaskId& id : job.submission.spec.Tasks()) tasks.push_back({.id = id});
  MUSTER_RETURN_IF_ERROR(SelectTasks(job.submission.id, tasks, {task.ToString()}).status());
  MUSTER_ASSIGN_OR_RETURN(platform::Platform * platform,
                          service.platform(std::string(job::PlatformOf(job.submission.target))));
  MUSTER_ASSIGN_OR_RETURN(job::TaskLaunch launch,
                          platform->LaunchOf(job.submission, job.cluster, task));
  // A task that Muster does not run has no job folder.
  for (const char* name : {"MUSTER_METRICS_FILE", "MUSTER_PROGRESS_FILE", "MUSTER_SOCKET_DIR",
                           "TORCHELASTIC_ERROR_FILE", "MUSTER_JOB_ID"}) {
    launch.env.erase(name);
  }
  if (!certificates.empty()) launch.env["MUSTER_TLS_DIR"] = certificates;
  if (const auto& train = job.submission.spec.train; !train.is_null()) {
    launch.env["MUSTER_TRAIN_CONFIG"] =
        train.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  return launch;
}

}  // namespace muster::jobs
