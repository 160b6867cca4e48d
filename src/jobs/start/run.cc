#include "jobs/start/run.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "codec/yaml.h"
#include "codec/yaml_writer.h"
#include "job/format/parse.h"
#include "jobs/control/refresh.h"
#include "jobs/find/lookup.h"
#include "jobs/start/images.h"
#include "jobs/start/load.h"
#include "jobs/start/submit.h"
#include "platform/capabilities.h"
#include "supervise/job_dir.h"

namespace muster::jobs {
namespace {

// Returns the running job with the submission's name, or nullopt. Returns FailedPrecondition if the
// name is taken by a job whose state is unknown.
absl::StatusOr<std::optional<RunningJobInfo>> FindRunning(Service& service,
                                                          const job::Submission& submission) {
  // Waits for a concurrent submitter, which holds the lock until Submit() has returned unless the
  // platform is slow to submit.
  MUSTER_ASSIGN_OR_RETURN(const base::FileLock lock, LockSubmissions(service));
  MUSTER_ASSIGN_OR_RETURN(const auto job, RunningJob(service, submission.spec.name));
  if (!job) return std::nullopt;
  if (IsUnmade(service, *job)) {
    if (job->id == submission.id) return std::nullopt;
    return absl::FailedPreconditionError(
        absl::StrCat(job->id, " may be running: ", job->reason, ". `muster show ", job->id,
                     "` looks for it, --job-id ", job->id, " replaces it, `muster jobs rm ",
                     job->id, "` removes it"));
  }
  if (IsOutOfReach(service, *job)) {
    return absl::FailedPreconditionError(absl::StrCat("the name '", job->name, "' is taken by ",
                                                      DescribeOutOfReach(service, *job),
                                                      ", or give this job another name"));
  }
  MUSTER_ASSIGN_OR_RETURN(job::Submission current,
                          supervise::JobDir(job->directory).LoadSubmission());
  return RunningJobInfo{*job, std::move(current)};
}

absl::Status OnlyForNewJobs(const RunningJobInfo& running, absl::string_view option) {
  return absl::FailedPreconditionError(
      absl::StrCat(option, " is for a new job, and ", running.job.id, " is running; stop it first ",
                   "(muster stop ", running.job.id, "), or give this job another name"));
}

// Returns FailedPrecondition if the job of that name runs on another target: names are unique
// across platforms.
absl::Status CheckSameTarget(const RunningJobInfo& running, const job::Submission& submission) {
  std::string where = absl::StrCat("on ", running.job.platform);
  if (running.job.platform == job::PlatformOf(submission.target)) {
    where = job::DescribeTarget(running.submission.target);
    if (where == job::DescribeTarget(submission.target)) return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(running.job.id, " is running ", where,
                                                    "; stop it first (muster stop ", running.job.id,
                                                    "), or give this job another name"));
}

// Returns an empty plan if `next` equals the running job, for a platform that cannot change
// running jobs.
absl::StatusOr<supervise::UpdatePlan> PlanNoUpdate(const platform::Traits& traits,
                                                   const RunningJobInfo& running,
                                                   const job::Submission& next,
                                                   const VersionChange& edited) {
  const job::Submission& current = running.submission;
  job::JobSpec spec = next.spec;
  spec.model_dir = current.spec.model_dir;
  const bool resumes = !next.resumed_from.empty() && next.resumed_from != current.resumed_from;
  if (spec == current.spec && !resumes && edited.files.empty() &&
      next.generation == current.generation &&
      job::RequestOf(next.target) == job::RequestOf(current.target)) {
    return supervise::UpdatePlan{};
  }
  const std::string& id = running.job.id;
  const std::string files = absl::StrJoin(
      edited.files, ", ",
      [](std::string* out, const auto& file) { absl::StrAppend(out, file.change.path); });
  return absl::FailedPreconditionError(absl::StrCat(
      files.empty() ? "" : absl::StrCat(files, " changed; "), id, " is running, and a job on ",
      traits.title, " cannot be changed: stop it (muster stop ", id,
      ") and continue from its checkpoint with --resume ", id, ", or give this job another name"));
}

absl::StatusOr<supervise::UpdatePlan> PlanUpdate(Service& service, platform::Platform& platform,
                                                 const RunningJobInfo& running,
                                                 const job::Submission& next,
                                                 const VersionChange& edited) {
  auto* updater = platform::CapabilityOf<platform::JobUpdater>(platform);
  if (updater == nullptr) return PlanNoUpdate(platform.traits(), running, next, edited);
  MUSTER_ASSIGN_OR_RETURN(history::History * history, service.history());
  MUSTER_ASSIGN_OR_RETURN(const auto tasks, history->Tasks(running.job.id));
  MUSTER_ASSIGN_OR_RETURN(supervise::UpdatePlan plan,
                          updater->PlanUpdate(running.job, tasks, next));
  if (!plan.empty()) MUSTER_RETURN_IF_ERROR(CheckRunnable(service, next));
  return plan;
}

// Returns the text in the layout of generated files, or unchanged if it cannot be parsed.
std::string Reformatted(const std::string& text) {
  codec::Diagnostics mistakes("");
  const std::vector<codec::Node> documents =
      codec::ParseYaml(text, {.bytes = job::kMaxJobFileBytes}, mistakes);
  return mistakes.empty() ? codec::ToYamlDocuments(documents) : text;
}

}  // namespace

SourceTexts SourcesOf(const RunPlan& plan) {
  const job::Submission& current = plan.running->submission;
  const job::Submission& next = plan.submission;
  if (!job::HasGeneratedSource(current) && !job::HasGeneratedSource(next)) {
    return {current.source, next.source};
  }
  return {Reformatted(current.source), Reformatted(next.source)};
}

absl::StatusOr<RunPlan> PlanRun(Service& service, const RunRequest& request) {
  RunPlan plan{.submission = request.submission};
  job::Submission& submission = plan.submission;
  if (request.fresh) {
    if (submission.spec.train.is_null()) {
      return absl::InvalidArgumentError(
          "--fresh is for jobs of the built-in trainer; this one has no `train` section");
    }
    submission.resume_step = 0;
  }
  const std::string name(job::PlatformOf(submission.target));
  MUSTER_ASSIGN_OR_RETURN(platform::Platform * platform, service.platform(name));
  MUSTER_RETURN_IF_ERROR(ChooseJobId(service, request.job_id, "train", submission));
  MUSTER_ASSIGN_OR_RETURN(plan.running, FindRunning(service, submission));
  const auto& running = plan.running;
  if (running && running->job.platform == name) {
    if (!request.job_id.empty()) return OnlyForNewJobs(*running, "--job-id");
    submission.target = job::InheritTarget(running->submission.target, submission.target);
  }
  if (running && request.fresh) return OnlyForNewJobs(*running, "--fresh");
  FillInJobId(running ? running->job.id : submission.id, submission);
  MUSTER_RETURN_IF_ERROR(CheckSupported(service, submission));
  MUSTER_RETURN_IF_ERROR(platform->Prepare(submission));
  if (running) {
    MUSTER_RETURN_IF_ERROR(CheckSameTarget(*running, submission));
    plan.edited = CompareVersion(service, platform::WorkDirUseOf(*platform, submission),
                                 running->job, running->submission, submission);
    submission.version = plan.edited.ids;
    submission.generation = running->submission.generation + (request.restart ? 1 : 0);
    MUSTER_ASSIGN_OR_RETURN(plan.update,
                            PlanUpdate(service, *platform, *running, submission, plan.edited));
    if (request.restart && plan.update.restarted.empty()) {
      return absl::FailedPreconditionError(absl::StrCat("--restart has no effect on the tasks of ",
                                                        running->job.id, "; stop it (muster stop ",
                                                        running->job.id, ") and run it again"));
    }
  } else {
    plan.runnable = CheckRunnable(service, submission);
  }
  return plan;
}

absl::StatusOr<std::optional<job::JobRecord>> StartPlanned(Service& service, const RunPlan& plan) {
  MUSTER_RETURN_IF_ERROR(plan.runnable);
  MUSTER_RETURN_IF_ERROR(PushImages(service, ImagesOf(service, plan.submission)));
  // The lock was not held during Prepare() and the checks, which may contact the platform. So the
  // name and the id must be checked again.
  MUSTER_ASSIGN_OR_RETURN(base::FileLock lock, LockSubmissions(service));
  MUSTER_ASSIGN_OR_RETURN(const bool named, IsNameFree(service, plan.submission.spec.name));
  if (!named) return std::nullopt;
  MUSTER_ASSIGN_OR_RETURN(const bool taken, TakeId(service, plan.submission));
  if (!taken) return std::nullopt;
  MUSTER_ASSIGN_OR_RETURN(job::JobRecord job, SubmitJob(service, plan.submission, std::move(lock)));
  return job;
}

absl::Status ApplyPlanned(Service& service, const RunPlan& plan) {
  MUSTER_ASSIGN_OR_RETURN(platform::Platform * platform,
                          service.platform(plan.running->job.platform));
  auto* updater = platform::CapabilityOf<platform::JobUpdater>(*platform);
  if (updater == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        plan.running->job.id, ": jobs on ", platform->traits().title, " cannot be changed"));
  }
  MUSTER_RETURN_IF_ERROR(PushImages(service, ImagesOf(service, plan.submission)));
  const job::JobRecord& job = plan.running->job;
  if (plan.edited.version.files.empty()) return updater->Update(job, plan.submission);
  MUSTER_RETURN_IF_ERROR(SaveVersion(service, job, plan.submission, plan.edited));
  const absl::Status updated = updater->Update(job, plan.submission);
  KeepOnlyVersion(job, updated.ok() ? plan.submission.version : plan.running->submission.version);
  return updated;
}

}  // namespace muster::jobs
