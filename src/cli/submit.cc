#include "cli/submit.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "cli/config_files.h"
#include "cli/job_checks.h"
#include "cli/job_lookup.h"
#include "history/job_folder.h"
#include "job/parse.h"
#include "process/identity.h"
#include "supervise/job_dir.h"

namespace muster::cli {
namespace {

absl::StatusOr<std::string> ReadJobFile(const std::string& path) {
  if (path != "-") return ReadFile(path, kMaxJobFileBytes);
  return ReadAll(STDIN_FILENO, kMaxJobFileBytes);
}

std::vector<TaskRecord> PendingTasks(const JobSpec& spec) {
  std::vector<TaskRecord> tasks;
  for (const TaskId& id : spec.Tasks()) tasks.push_back({.id = id});
  return tasks;
}

bool NeedsTrainer(const JobSpec& spec) {
  for (const RoleSpec& role : spec.roles) {
    if (role.command.empty()) return true;
  }
  return false;
}

JobRecord RecordOf(Context& context, const Submission& submission, const std::string& platform) {
  return {.id = submission.id,
          .name = submission.spec.name,
          .platform = platform,
          .created = submission.created,
          .directory = JobDir::Of(context.home(), submission.id).path(),
          .model_dir = submission.spec.model_dir,
          .resumed_from = submission.resumed_from,
          .tasks = static_cast<int>(submission.spec.Tasks().size())};
}

absl::Status MakeFolder(const JobRecord& job, const std::vector<TaskRecord>& tasks) {
  MUSTER_RETURN_IF_ERROR(JobDir(job.directory).Create());
  return ReplaceFile(JoinPath(job.directory, kJobFolderFile), JobFolderToJson(job, tasks));
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

absl::StatusOr<Submission> LoadSubmission(Context& context, const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(Submission submission,
                          LoadSubmission(context, std::vector<std::string>{path}));
  FillInJobId(submission.spec.name, submission);
  return submission;
}

void FillInJobId(const std::string& job_id, Submission& submission) {
  std::string& model_dir = submission.spec.model_dir;
  model_dir = absl::StrReplaceAll(model_dir, {{"{job_id}", job_id}});
}

absl::StatusOr<Submission> LoadSubmission(Context& context, const std::vector<std::string>& paths) {
  MUSTER_RETURN_IF_ERROR(context.CheckWorkingDir());
  std::vector<ConfigFile> files;
  for (const std::string& path : paths) {
    auto text = ReadJobFile(path);
    if (!text.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot read the job file: ", text.status().message()));
    }
    files.push_back({path == "-" ? "standard input" : path, *std::move(text)});
  }
  MUSTER_ASSIGN_OR_RETURN(std::string text, MergeConfigs(files));
  // Records are JSON, which cannot represent other bytes.
  if (!IsUtf8(context.working_dir())) {
    return absl::FailedPreconditionError(
        "the name of the current directory is not valid UTF-8; run the job from another one");
  }
  std::vector<std::string> names;
  names.reserve(files.size());
  for (const ConfigFile& file : files) names.push_back(file.name);
  Submission submission;
  std::vector<std::string> warnings;
  MUSTER_ASSIGN_OR_RETURN(submission.spec, ParseJob(text, {.file_name = absl::StrJoin(names, " + "),
                                                           .working_dir = context.working_dir(),
                                                           .warnings = &warnings}));
  for (const std::string& warning : warnings) {
    context.err().Note(absl::StrCat("warning: ", warning));
  }
  submission.id = NewJobId(submission.spec.name);
  submission.source_name = absl::StrJoin(paths, " + ");
  submission.source = std::move(text);
  submission.working_dir = context.working_dir();
  submission.trainer = context.FindTrainer().value_or("muster-trainer");
  submission.created = absl::Now();
  return submission;
}

absl::Status CheckSupported(Context& context, const Platform& platform,
                            const Submission& submission) {
  std::vector<std::string> refused;
  for (const Limit& limit : platform.Unsupported(submission)) {
    if (limit.fatal) {
      refused.push_back(limit.what);
    } else {
      context.err().Note(absl::StrCat("not on ", platform.name(), ": ", limit.what));
    }
  }
  if (refused.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(refused, "\n"));
}

absl::Status CheckRunnable(Context& context, const Platform& platform,
                           const Submission& submission) {
  if (!platform.runs_here()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const auto findings, CheckJobHere(context.home(), submission));
  for (const Finding& finding : findings) {
    if (finding.grade == Grade::kOk || finding.fatal) continue;
    context.err().Note(absl::StrCat(finding.subject, ": ", finding.detail));
  }
  return FatalFindings(findings, submission);
}

absl::StatusOr<UniqueFd> LockSubmissions(Context& context) {
  MUSTER_RETURN_IF_ERROR(MakeDirectories(context.home()));
  const std::string path = JoinPath(context.home(), "submit.lock");
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, path);
  while (::flock(fd.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return absl::ErrnoToStatus(errno, path);
  }
  return fd;
}

absl::StatusOr<bool> IsNameFree(Context& context, const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(History * history, context.history());
  MUSTER_ASSIGN_OR_RETURN(const auto jobs, history->ListJobs({.only_active = true}));
  return std::none_of(jobs.begin(), jobs.end(), [&name](const JobRecord& job) {
    return job.name == name && !IsAnothers(job) && !IsUnmade(job);
  });
}

absl::StatusOr<bool> TakeId(Context& context, const Submission& submission) {
  MUSTER_ASSIGN_OR_RETURN(History * history, context.history());
  const auto job = history->GetJob(submission.id);
  if (absl::IsNotFound(job.status())) return true;
  MUSTER_RETURN_IF_ERROR(job.status());
  if (!IsUnmade(*job)) return false;
  std::error_code error;
  std::filesystem::remove_all(job->directory, error);
  if (error) return absl::UnavailableError(absl::StrCat(job->directory, ": ", error.message()));
  MUSTER_RETURN_IF_ERROR(history->DeleteJob(submission.id));
  return true;
}

absl::StatusOr<JobRecord> SubmitJob(Context& context, const Submission& submission,
                                    const std::string& platform_name, UniqueFd lock) {
  MUSTER_ASSIGN_OR_RETURN(Platform * platform, context.platform(platform_name));
  MUSTER_ASSIGN_OR_RETURN(History * history, context.history());
  // On other platforms the trainer is part of an image.
  const bool runs_ours = platform_name == "local" || platform_name == "ssh";
  if (runs_ours && NeedsTrainer(submission.spec)) {
    MUSTER_RETURN_IF_ERROR(context.FindTrainer().status());
  }
  JobRecord job = RecordOf(context, submission, platform_name);
  // This process owns the job until the platform takes over. If it dies before that, Refresh()
  // marks the job as never started.
  MUSTER_ASSIGN_OR_RETURN(job.supervisor, IdentifyProcess(::getpid()));
  const std::vector<TaskRecord> tasks = PendingTasks(submission.spec);
  MUSTER_RETURN_IF_ERROR(history->AddJob(job, tasks));
  // The record reserves the name and the id, so other submitters need not wait for a slow Submit().
  if (platform->is_slow()) lock.Reset();
  const absl::Status started = [&]() -> absl::Status {
    MUSTER_RETURN_IF_ERROR(MakeFolder(job, tasks));
    return platform->Submit(submission, job);
  }();
  if (started.ok()) {
    Observe(context, job).IgnoreError();  // best effort: the job has started
    return job;
  }
  // The job may have started: the record stays as it is until Observe() finds out.
  if (absl::IsUnknown(started)) return started;
  job.state = JobState::kFailed;
  job.reason = std::string(started.message());
  job.finished = absl::Now();
  StateChange change{.job = job, .tasks = tasks};
  for (TaskRecord& task : change.tasks) {
    task.state = TaskState::kStopped;
    task.reason = "never started";
  }
  history->Apply(change).IgnoreError();
  return Annotate(started, absl::StrCat(job.id, " could not start"));
}

absl::StatusOr<JobRecord> KeepImported(Context& context, const Submission& submission,
                                       const std::string& platform) {
  MUSTER_ASSIGN_OR_RETURN(History * history, context.history());
  const JobRecord job = RecordOf(context, submission, platform);
  const std::vector<TaskRecord> tasks = PendingTasks(submission.spec);
  // Creates the folder first: a record without a stored submission is unusable.
  MUSTER_RETURN_IF_ERROR(MakeFolder(job, tasks));
  MUSTER_RETURN_IF_ERROR(JobDir(job.directory).SaveSubmission(submission));
  MUSTER_RETURN_IF_ERROR(history->AddJob(job, tasks));
  return job;
}

}  // namespace muster::cli
