// The owner of a job's record, which alone may write it (history.cc):
//
//    AddJob ──> Pending, owned by this process ──Submit──> owned by supervisor or platform
//                   │                            ├─error──> Failed, by this process
//                   │                            └─Unknown─> Pending; Observe() finds the outcome
//                   └─this process dies─> Failed, by the Refresh() of any command
//
// The record reserves the name and the id from AddJob() on, so a submission to a slow platform
// releases the lock there.
#include "jobs/start/submit.h"

#include <unistd.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "history/job_folder.h"
#include "jobs/control/refresh.h"
#include "jobs/control/remove.h"
#include "jobs/start/version.h"
#include "platform/capabilities.h"
#include "process/identity.h"
#include "supervise/job_dir.h"

namespace muster::jobs {
namespace {

// Long enough for a holder that starts a supervisor, or asks a slow platform for a running job.
constexpr absl::Duration kSubmitLockTimeout = absl::Minutes(5);

std::vector<job::TaskRecord> PendingTasks(const job::JobSpec& spec) {
  std::vector<job::TaskRecord> tasks;
  for (const cluster::TaskId& id : spec.Tasks()) tasks.push_back({.id = id});
  return tasks;
}

absl::StatusOr<platform::Platform*> PlatformFor(Service& service,
                                                const job::Submission& submission) {
  return service.platform(std::string(job::PlatformOf(submission.target)));
}

job::JobRecord RecordOf(Service& service, const job::Submission& submission) {
  return {.id = submission.id,
          .name = submission.spec.name,
          .platform = std::string(job::PlatformOf(submission.target)),
          .created = submission.created,
          .directory = supervise::JobDir::Of(service.home(), submission.id).path(),
          .model_dir = submission.spec.model_dir,
          .resumed_from = submission.resumed_from,
          .tasks = static_cast<int>(submission.spec.Tasks().size())};
}

absl::Status MakeFolder(const job::JobRecord& job, const std::vector<job::TaskRecord>& tasks) {
  MUSTER_RETURN_IF_ERROR(supervise::JobDir(job.directory).Create());
  return base::ReplaceFile(base::JoinPath(job.directory, history::kJobFolderFile),
                           history::JobFolderToJson(job, tasks));
}

// Sets the id and returns true if it is free or belongs to a job that was never created.
absl::StatusOr<bool> MayTake(Service& service, const platform::ChosenIds& ids,
                             const std::string& id, job::Submission& submission) {
  MUSTER_ASSIGN_OR_RETURN(history::History * history, service.history());
  auto job = history->GetJob(id);
  if (!job.ok() && !absl::IsNotFound(job.status())) return job.status();
  std::optional<job::Submission> unmade;
  if (job.ok()) {
    MUSTER_RETURN_IF_ERROR(Refresh(service, *job));
    if (!IsUnmade(service, *job)) return false;
    auto before = supervise::JobDir(job->directory).LoadSubmission();
    if (before.ok()) unmade = *std::move(before);
  }
  submission.id = id;
  ids.ReuseId(unmade ? &*unmade : nullptr, submission);
  return true;
}

void RecordFailedStart(history::History& history, job::JobRecord job,
                       std::vector<job::TaskRecord> tasks, const absl::Status& why) {
  job.state = job::JobState::kFailed;
  job.reason = std::string(why.message());
  job.finished = absl::Now();
  for (job::TaskRecord& task : tasks) {
    task.state = job::TaskState::kStopped;
    task.reason = "never started";
  }
  history.Apply({.job = std::move(job), .tasks = std::move(tasks)}).IgnoreError();
}

}  // namespace

std::string NewJobId(const std::string& name) {
  // No vowels, which could form words, and no characters that look alike.
  constexpr absl::string_view kAlphabet = "23456789bcdfghjkmnpqrstvwxz";
  std::random_device random;
  std::string id = absl::StrCat(name, "-");
  for (int i = 0; i < 5; ++i) id.push_back(kAlphabet[random() % kAlphabet.size()]);
  return id;
}

absl::Status ChooseJobId(Service& service, const std::string& wanted, const std::string& prefix,
                         job::Submission& submission) {
  MUSTER_ASSIGN_OR_RETURN(platform::Platform * platform, PlatformFor(service, submission));
  const auto* ids = platform::CapabilityOf<platform::ChosenIds>(*platform);
  if (ids == nullptr) {
    submission.id = NewJobId(submission.spec.name);
    return absl::OkStatus();
  }
  if (!wanted.empty()) {
    MUSTER_RETURN_IF_ERROR(ids->CheckId(wanted));
    MUSTER_ASSIGN_OR_RETURN(const bool free, MayTake(service, *ids, wanted, submission));
    if (free) return absl::OkStatus();
    return absl::AlreadyExistsError(absl::StrCat("the job id '", wanted, "' is taken (muster show ",
                                                 wanted, "); choose another with --job-id"));
  }
  const std::string id = absl::StrCat(
      prefix, "_", absl::FormatTime("%Y%m%d_%H%M%S", absl::Now(), absl::LocalTimeZone()));
  std::string tried = id;
  for (int i = 2;; ++i) {
    MUSTER_ASSIGN_OR_RETURN(const bool free, MayTake(service, *ids, tried, submission));
    if (free) return absl::OkStatus();
    tried = absl::StrCat(id, "_", i);
  }
}

absl::Status CheckSupported(Service& service, const job::Submission& submission) {
  MUSTER_ASSIGN_OR_RETURN(const platform::Platform* platform, PlatformFor(service, submission));
  std::vector<std::string> refused;
  for (const platform::Limit& limit : platform->Unsupported(submission)) {
    if (limit.fatal) {
      refused.push_back(limit.what);
    } else {
      service.Notify(absl::StrCat("not supported on ", platform->name(), ": ", limit.what));
    }
  }
  if (refused.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(refused, "\n"));
}

absl::Status CheckRunnable(Service& service, const job::Submission& submission) {
  MUSTER_ASSIGN_OR_RETURN(platform::Platform * platform, PlatformFor(service, submission));
  auto* preflight = platform::CapabilityOf<platform::JobPreflight>(*platform);
  if (preflight == nullptr) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const auto findings, preflight->CheckJob(submission, /*thorough=*/false));
  for (const platform::Finding& finding : findings) {
    if (finding.grade == platform::Grade::kOk || finding.fatal) continue;
    service.Notify(absl::StrCat(finding.subject, ": ", finding.detail));
  }
  return platform::FatalFindings(findings, submission);
}

absl::StatusOr<base::FileLock> LockSubmissions(Service& service) {
  MUSTER_RETURN_IF_ERROR(base::MakeDirectories(service.home()));
  return base::FileLock::Acquire(
      base::JoinPath(service.home(), "submit.lock"),
      {.timeout = kSubmitLockTimeout, .cancelled = service.interrupted()});
}

absl::StatusOr<bool> IsNameFree(Service& service, const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(history::History * history, service.history());
  MUSTER_ASSIGN_OR_RETURN(const auto jobs, history->ListJobs({.only_active = true}));
  return std::none_of(jobs.begin(), jobs.end(), [&](const job::JobRecord& job) {
    return job.name == name && !IsForeignJob(job) && !IsUnmade(service, job);
  });
}

absl::StatusOr<bool> TakeId(Service& service, const job::Submission& submission) {
  MUSTER_ASSIGN_OR_RETURN(history::History * history, service.history());
  const auto job = history->GetJob(submission.id);
  if (absl::IsNotFound(job.status())) return true;
  MUSTER_RETURN_IF_ERROR(job.status());
  if (!IsUnmade(service, *job)) return false;
  MUSTER_RETURN_IF_ERROR(RemoveJob(service, submission.id));
  return true;
}

absl::StatusOr<job::JobRecord> SubmitJob(Service& service, const job::Submission& submission,
                                         std::optional<base::FileLock> lock) {
  MUSTER_ASSIGN_OR_RETURN(platform::Platform * platform, PlatformFor(service, submission));
  MUSTER_ASSIGN_OR_RETURN(history::History * history, service.history());
  if (platform->traits().uses_installed_trainer && job::NeedsTrainer(submission.spec)) {
    MUSTER_RETURN_IF_ERROR(service.FindTrainer().status());
  }
  job::JobRecord job = RecordOf(service, submission);
  // This process owns the job until the platform takes over. If it dies before that, Refresh()
  // marks the job as never started.
  MUSTER_ASSIGN_OR_RETURN(job.supervisor, process::IdentifyProcess(::getpid()));
  const std::vector<job::TaskRecord> tasks = PendingTasks(submission.spec);
  MUSTER_RETURN_IF_ERROR(history->AddJob(job, tasks));
  // The record reserves the name and the id, so other submitters need not wait for a slow Submit().
  if (platform->traits().slow_to_submit) lock.reset();
  absl::Status started = MakeFolder(job, tasks);
  if (started.ok()) {
    job::Submission complete = submission;
    TakeVersion(service, platform::WorkDirUseOf(*platform, complete), job, complete);
    started = platform->Submit(complete, job);
  }
  if (started.ok()) {
    Observe(service, job).IgnoreError();  // best effort: the job has started
    return job;
  }
  // The job may have started: the record stays as it is until Observe() determines the outcome.
  if (absl::IsUnknown(started)) return started;
  RecordFailedStart(*history, job, tasks, started);
  return base::Annotate(started, absl::StrCat(job.id, " could not start"));
}

absl::StatusOr<job::JobRecord> AddImported(Service& service, const job::Submission& submission) {
  MUSTER_ASSIGN_OR_RETURN(history::History * history, service.history());
  const job::JobRecord job = RecordOf(service, submission);
  const std::vector<job::TaskRecord> tasks = PendingTasks(submission.spec);
  // Creates the folder first: a record without a stored submission is unusable.
  MUSTER_RETURN_IF_ERROR(MakeFolder(job, tasks));
  MUSTER_RETURN_IF_ERROR(supervise::JobDir(job.directory).SaveSubmission(submission));
  MUSTER_RETURN_IF_ERROR(history->AddJob(job, tasks));
  return job;
}

}  // namespace muster::jobs
