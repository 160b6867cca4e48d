#include "cli/job_lookup.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/file_lock.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "base/units.h"
#include "cli/submit.h"
#include "platform/local/platform.h"
#include "process/identity.h"
#include "supervise/job_dir.h"

namespace muster::cli {
namespace {

// For the lock of another observer.
constexpr absl::Duration kTimeout = absl::Minutes(1);

// Marks a job without a supervisor as Failed, and kills its leftover processes.
absl::Status MarkLost(Context& context, JobRecord& job) {
  MUSTER_ASSIGN_OR_RETURN(History * history, context.history());
  StateChange change{.job = job};
  change.job.state = JobState::kFailed;
  change.job.finished = absl::Now();
  change.job.reason = job.state == JobState::kPending
                          ? "it never started: `muster run` was interrupted"
                          : "its supervisor died: it was killed, or the machine restarted";
  MUSTER_ASSIGN_OR_RETURN(std::vector<TaskRecord> tasks, history->Tasks(job.id));
  for (TaskRecord& task : tasks) {
    if (IsFinal(task.state)) continue;
    task.state = TaskState::kLost;
    task.pid = 0;
    task.finished = change.job.finished;
    task.reason = "its supervisor died";
    change.tasks.push_back(std::move(task));
  }
  change.events.push_back({.time = *change.job.finished,
                           .kind = "job",
                           .message = absl::StrCat("Failed: ", change.job.reason)});
  const absl::Status applied = history->Apply(change);
  // Apply() returns FailedPrecondition if the job has ended or started since `job` was read. Only
  // the process whose change was applied may kill leftovers: otherwise they may belong to a job
  // that is alive.
  if (applied.ok()) {
    const int leftovers = local::KillLeftovers(job.id);
    if (leftovers > 0) {
      context.err().Note(
          absl::StrCat("ended ", Plural(leftovers, "process"), " that ", job.id, " had left"));
    }
  } else if (!absl::IsFailedPrecondition(applied)) {
    return applied;
  }
  MUSTER_ASSIGN_OR_RETURN(job, history->GetJob(job.id));
  return absl::OkStatus();
}

// Looks a job up on the platform of `target`, and adds it to the history if absent there.
absl::StatusOr<JobRecord> FindThere(Context& context, const std::string& reference,
                                    const TargetOptions& target) {
  MUSTER_ASSIGN_OR_RETURN(Platform * platform, context.platform(target.platform));
  MUSTER_ASSIGN_OR_RETURN(const Submission submission,
                          platform->Import(reference, target.ToTarget()));
  MUSTER_ASSIGN_OR_RETURN(History * history, context.history());
  auto job = history->GetJob(submission.id);
  if (absl::IsNotFound(job.status())) job = KeepImported(context, submission, target.platform);
  MUSTER_RETURN_IF_ERROR(job.status());
  MUSTER_RETURN_IF_ERROR(Refresh(context, *job));
  return job;
}

}  // namespace

absl::Status Observe(Context& context, JobRecord& job) {
  MUSTER_ASSIGN_OR_RETURN(Platform * platform, context.platform(job.platform));
  if (!platform->is_observed()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(History * history, context.history());
  // Serializes observers, and reloads the record under the lock, so that each change is applied and
  // its events are recorded once.
  MUSTER_ASSIGN_OR_RETURN(const FileLock lock,
                          FileLock::Acquire(JoinPath(job.directory, "observe.lock"), kTimeout));
  MUSTER_ASSIGN_OR_RETURN(job, history->GetJob(job.id));
  MUSTER_ASSIGN_OR_RETURN(const auto tasks, history->Tasks(job.id));
  MUSTER_ASSIGN_OR_RETURN(const auto change, platform->Observe(job, tasks));
  if (!change) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(history->Apply(*change));
  job = change->job;
  return absl::OkStatus();
}

absl::Status Refresh(Context& context, JobRecord& job) {
  if (IsFinal(job.state)) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(Platform * platform, context.platform(job.platform));
  // The submitter owns the record until the platform takes over.
  const bool submitting = job.supervisor && FindProcess(*job.supervisor) == Existence::kAlive;
  if (platform->is_observed() && !submitting) {
    const absl::Status observed = Observe(context, job);
    if (!observed.ok()) {
      job.state = JobState::kUnreachable;
      job.reason = std::string(observed.message());
      return absl::OkStatus();
    }
    if (IsFinal(job.state)) return absl::OkStatus();
  }
  if (platform->Check(job) != Liveness::kGone) return absl::OkStatus();
  return MarkLost(context, job);
}

absl::StatusOr<JobRecord> FindJob(Context& context, const std::string& reference,
                                  const TargetOptions& target) {
  MUSTER_RETURN_IF_ERROR(target.Check());
  MUSTER_ASSIGN_OR_RETURN(History * history, context.history());
  if (!target.platform.empty()) {
    auto found = FindThere(context, reference, target);
    if (found.ok() || !absl::IsNotFound(found.status())) return found;
    const auto known = history->Resolve(reference);
    if (!known.ok() || known->platform != target.platform) return found;
  }
  MUSTER_ASSIGN_OR_RETURN(JobRecord job, history->Resolve(reference));
  if (target.in_cluster() && job.platform != "kubernetes") {
    return absl::InvalidArgumentError(
        absl::StrCat("a namespace or a context is for jobs on Kubernetes, and ", job.id, " is on ",
                     job.platform));
  }
  MUSTER_RETURN_IF_ERROR(Refresh(context, job));
  return job;
}

std::optional<JobRecord> JobNamed(Context& context, const std::string& reference) {
  // Job names contain neither character. Skips opening the history for obvious paths.
  if (reference.find_first_of("./") != std::string::npos) return std::nullopt;
  const auto history = context.history();
  if (!history.ok()) return std::nullopt;
  auto job = (*history)->Resolve(reference);
  if (!job.ok() || (job->name != reference && job->id != reference)) return std::nullopt;
  return *std::move(job);
}

bool IsFile(Context& context, const std::string& reference) {
  std::error_code error;
  if (reference == "-") return true;
  return std::filesystem::exists(reference, error) && !JobNamed(context, reference);
}

absl::StatusOr<JobRecord> LatestJob(Context& context) {
  MUSTER_ASSIGN_OR_RETURN(History * history, context.history());
  for (const bool only_active : {true, false}) {
    MUSTER_ASSIGN_OR_RETURN(
        auto jobs, history->ListJobs({.only_active = only_active, .limit = only_active ? 0 : 1}));
    for (JobRecord& job : jobs) {
      MUSTER_RETURN_IF_ERROR(Refresh(context, job));
      if (!only_active || !IsFinal(job.state)) return job;
    }
  }
  return absl::NotFoundError("there are no jobs yet; `muster run job.yaml` starts one");
}

bool IsAnothers(const JobRecord& job) {
  const auto submission = JobDir(job.directory).LoadSubmission();
  return submission.ok() && IsForeign(submission->target);
}

bool IsUnmade(const JobRecord& job) {
  if (job.platform != "vertex" || job.started.has_value()) return false;
  if (IsFinal(job.state) && job.state != JobState::kFailed) return false;
  if (job.supervisor && FindProcess(*job.supervisor) == Existence::kAlive) return false;
  const auto submission = JobDir(job.directory).LoadSubmission();
  return !submission.ok() || TargetOf<VertexTarget>(*submission).run.custom_job.empty();
}

absl::StatusOr<std::optional<JobRecord>> RunningJob(Context& context, const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(History * history, context.history());
  MUSTER_ASSIGN_OR_RETURN(auto jobs, history->ListJobs({.only_active = true}));
  for (JobRecord& job : jobs) {
    if (job.name != name || IsAnothers(job)) continue;
    MUSTER_RETURN_IF_ERROR(Refresh(context, job));
    if (!IsFinal(job.state)) return job;
  }
  return std::nullopt;
}

bool IsOutOfReach(Context& context, const JobRecord& job) {
  if (IsFinal(job.state)) return false;
  const auto platform = context.platform(job.platform);
  if (!platform.ok()) return true;  // written by a later version
  if ((*platform)->is_observed()) return job.state == JobState::kUnreachable;
  return (*platform)->Check(job) == Liveness::kUnknown;
}

std::string WhereIs(Context& context, const JobRecord& job) {
  const auto platform = context.platform(job.platform);
  const auto submission = JobDir(job.directory).LoadSubmission();
  if (!platform.ok() || !submission.ok()) return absl::StrCat("on ", job.platform);
  if ((*platform)->is_observed() || !(*platform)->runs_here()) {
    return (*platform)->Describe(*submission);
  }
  return "on the machine or in the container where it was started";
}

std::string OutOfReach(Context& context, const JobRecord& job) {
  return absl::StrCat(
      job.id, ", which may be running ", WhereIs(context, job), " and is out of reach",
      job.reason.empty() ? "" : absl::StrCat(": ", job.reason),
      "; if that is gone for good, `muster jobs forget ", job.id, "` frees its name");
}

absl::StatusOr<std::vector<TaskId>> SelectTasks(const std::vector<TaskRecord>& tasks,
                                                const std::vector<std::string>& selectors) {
  std::vector<TaskId> selected;
  std::vector<std::string> names, words;
  for (const TaskRecord& task : tasks) {
    names.push_back(task.id.ToString());
    words.push_back(task.id.role);
    if (selectors.empty()) selected.push_back(task.id);
  }
  words.insert(words.end(), names.begin(), names.end());
  for (const std::string& selector : selectors) {
    bool found = false;
    for (const TaskRecord& task : tasks) {
      if (task.id.ToString() != selector && task.id.role != selector) continue;
      found = true;
      if (std::find(selected.begin(), selected.end(), task.id) == selected.end()) {
        selected.push_back(task.id);
      }
    }
    if (found) continue;
    return absl::InvalidArgumentError(absl::StrCat("no task '", selector, "'",
                                                   DidYouMean(selector, words), "; the job has ",
                                                   absl::StrJoin(names, ", ")));
  }
  return selected;
}

}  // namespace muster::cli
