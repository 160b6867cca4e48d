// Changes jobs.
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "dashboard/api.h"
#include "dashboard/params.h"
#include "jobs/control/refresh.h"
#include "jobs/control/remove.h"
#include "jobs/control/stop.h"
#include "jobs/results/notes.h"
#include "jobs/start/load.h"
#include "jobs/start/resume.h"
#include "jobs/start/run.h"
#include "jobs/start/trainer_command.h"
#include "process/run.h"
#include "supervise/job_dir.h"

namespace muster::dashboard {
namespace {

using nlohmann::json;

constexpr int kTries = 5;  // after a lost race for the name or the id
constexpr absl::Duration kEvaluationTimeout = absl::Minutes(30);
constexpr size_t kMaxOutput = 1 << 20;

// Returns the checkpoint that the body names, or nullopt.
absl::StatusOr<std::optional<int64_t>> StepIn(const json& body) {
  const auto step = body.find("step");
  if (step == body.end()) return std::nullopt;
  if (step->is_number_integer() && step->get<int64_t>() >= 0) return step->get<int64_t>();
  return absl::InvalidArgumentError("\"step\" must be a whole number that is not negative");
}

absl::StatusOr<std::string> TextIn(const json& body, const char* name) {
  const auto found = body.find(name);
  if (found == body.end()) return "";
  if (found->is_string()) return found->get<std::string>();
  return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" must be a text"));
}

absl::StatusOr<std::vector<std::string>> ListIn(const json& body, const char* name) {
  const auto found = body.find(name);
  std::vector<std::string> texts;
  if (found == body.end()) return texts;
  const auto invalid =
      absl::InvalidArgumentError(absl::StrCat("\"", name, "\" must be a list of texts"));
  if (!found->is_array()) return invalid;
  for (const json& text : *found) {
    if (!text.is_string()) return invalid;
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

// Starts a planned job. A job of that name that runs is not changed: that needs the user's consent,
// which `muster run` asks for.
absl::StatusOr<job::JobRecord> Start(jobs::Service& service, const jobs::RunRequest& request) {
  for (int i = 0; i < kTries; ++i) {
    MUSTER_ASSIGN_OR_RETURN(const jobs::RunPlan plan, jobs::PlanRun(service, request));
    if (plan.running) {
      return absl::FailedPreconditionError(absl::StrCat(
          plan.running->job.id, " is running under this name; stop it, or choose another name"));
    }
    MUSTER_RETURN_IF_ERROR(plan.runnable);
    MUSTER_ASSIGN_OR_RETURN(const auto job, jobs::StartPlanned(service, plan));
    if (job) return *job;
  }
  return absl::UnavailableError("other processes keep starting jobs of this name; try again");
}

}  // namespace

absl::StatusOr<Response> StopJob(ApiContext& context, const Request& request,
                                 const std::string& id) {
  MUSTER_ASSIGN_OR_RETURN(const json body, ObjectBody(request, {"immediately"}));
  const auto immediately = body.find("immediately");
  if (immediately != body.end() && !immediately->is_boolean()) {
    return absl::InvalidArgumentError("\"immediately\" must be true or false");
  }
  MUSTER_ASSIGN_OR_RETURN(job::JobRecord job, JobWithId(context, id));
  MUSTER_RETURN_IF_ERROR(jobs::Refresh(context.service, job));
  if (job::IsFinal(job.state)) {
    return absl::FailedPreconditionError(
        absl::StrCat(id, " has ended: it is ", job::ToString(job.state)));
  }
  MUSTER_RETURN_IF_ERROR(
      jobs::StopJob(context.service, job, immediately != body.end() && immediately->get<bool>()));
  context.feed.Touch(id);
  return JsonResponse(SummaryOf(context, job));
}

absl::StatusOr<Response> ResumeJob(ApiContext& context, const Request& request,
                                   const std::string& id) {
  MUSTER_ASSIGN_OR_RETURN(const json body, ObjectBody(request, {"step"}));
  MUSTER_ASSIGN_OR_RETURN(const std::optional<int64_t> step, StepIn(body));
  MUSTER_ASSIGN_OR_RETURN(job::JobRecord job, JobWithId(context, id));
  MUSTER_RETURN_IF_ERROR(jobs::Refresh(context.service, job));
  MUSTER_ASSIGN_OR_RETURN(const job::Submission submission,
                          jobs::PlanResume(context.service, job, step));
  MUSTER_ASSIGN_OR_RETURN(const job::JobRecord started,
                          jobs::StartResumed(context.service, submission));
  return JsonResponse(SummaryOf(context, started));
}

absl::StatusOr<Response> EvaluateJob(ApiContext& context, const Request& request,
                                     const std::string& id) {
  MUSTER_ASSIGN_OR_RETURN(const json body, ObjectBody(request, {"step"}));
  MUSTER_ASSIGN_OR_RETURN(const std::optional<int64_t> step, StepIn(body));
  MUSTER_ASSIGN_OR_RETURN(const job::JobRecord job, JobWithId(context, id));
  const jobs::TrainerRequest evaluation{.checkpoint = step ? absl::StrCat(*step) : "latest",
                                        .json = true};
  MUSTER_ASSIGN_OR_RETURN(
      process::SpawnOptions command,
      jobs::TrainerCommand(context.service, job, evaluation, process::CurrentEnvironment()));
  MUSTER_ASSIGN_OR_RETURN(const process::RunResult result,
                          process::Run(std::move(command), kEvaluationTimeout, kMaxOutput));
  // Warnings may precede the object.
  const size_t begin = result.output.find('{');
  const json metrics =
      begin == std::string::npos ? json() : base::ParseJson(result.output.substr(begin));
  if (result.exit.code() == 0 && metrics.is_object()) return JsonResponse(metrics);
  return absl::FailedPreconditionError(
      absl::StrCat("the evaluation ", result.exit.Describe(), ": ", result.output.substr(0, 2000)));
}

absl::StatusOr<Response> RunAgain(ApiContext& context, const Request& request,
                                  const std::string& id) {
  MUSTER_ASSIGN_OR_RETURN(const json body, ObjectBody(request, {"file", "set", "name"}));
  MUSTER_ASSIGN_OR_RETURN(const std::string file, TextIn(body, "file"));
  job::Overrides overrides;
  MUSTER_ASSIGN_OR_RETURN(overrides.set, ListIn(body, "set"));
  MUSTER_ASSIGN_OR_RETURN(overrides.name, TextIn(body, "name"));
  MUSTER_ASSIGN_OR_RETURN(const job::JobRecord job, JobWithId(context, id));
  MUSTER_ASSIGN_OR_RETURN(const job::Submission previous,
                          supervise::JobDir(job.directory).LoadSubmission());
  const jobs::ConfigFile source{.path = absl::StrCat("the file of ", id),
                                .text = file.empty() ? previous.source : file};
  jobs::RunRequest run;
  MUSTER_ASSIGN_OR_RETURN(run.submission, jobs::LoadSubmission(context.service, {source},
                                                               previous.working_dir, overrides));
  run.submission.source_name = previous.source_name;
  run.submission.target = previous.target;
  run.submission.send_home = previous.send_home;
  MUSTER_ASSIGN_OR_RETURN(const job::JobRecord started, Start(context.service, run));
  return JsonResponse(SummaryOf(context, started));
}

absl::StatusOr<Response> RemoveJob(ApiContext& context, const Request& /*request*/,
                                   const std::string& id) {
  MUSTER_RETURN_IF_ERROR(JobWithId(context, id).status());
  MUSTER_RETURN_IF_ERROR(jobs::FindRemovable(context.service, id, /*force=*/false).status());
  MUSTER_RETURN_IF_ERROR(jobs::RemoveJob(context.service, id));
  return Response{.status = 204};
}

absl::StatusOr<Response> SetNotes(ApiContext& context, const Request& request,
                                  const std::string& id) {
  MUSTER_RETURN_IF_ERROR(JobWithId(context, id).status());
  MUSTER_ASSIGN_OR_RETURN(const jobs::Notes notes,
                          jobs::NotesFromJson(base::ParseJson(request.body)));
  MUSTER_RETURN_IF_ERROR(jobs::WriteNotes(context.service.home(), id, notes));
  context.feed.Touch(id);
  return JsonResponse(jobs::NotesToJson(notes));
}

}  // namespace muster::dashboard
