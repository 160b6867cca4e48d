#include "cli/evaluate_vertex.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/terminal_text.h"
#include "base/units.h"
#include "cli/attach.h"
#include "cli/print_json.h"
#include "cli/submit.h"
#include "platform/vertex/path_rewrite.h"
#include "platform/vertex/platform.h"
#include "storage/json.h"
#include "storage/storage.h"

namespace muster::cli {
namespace {

constexpr int64_t kMaxResult = 1 << 20;

std::string ResultFile(const Submission& submission) {
  return absl::StrCat(submission.spec.model_dir, "/eval/", submission.id, ".json");
}

// Returns the training job reduced to one evaluator task.
JobSpec EvaluatorOf(JobSpec spec, const VertexEvaluation& evaluation) {
  RoleSpec evaluator{.name = "evaluator"};
  for (const RoleSpec& role : spec.roles) {
    if (role.command.empty() && evaluator.image.empty()) evaluator.image = role.image;
    if (role.command.empty()) evaluator.env.insert(role.env.begin(), role.env.end());
  }
  std::string split = evaluation.split;
  if (split.empty()) {
    const auto section = spec.train.value("evaluate", nlohmann::json::object());
    split = section.value("split", "test");
  }
  evaluator.command = {"muster-trainer", "evaluate",       "--split", split,
                       "--checkpoint",   evaluation.which, "--to"};
  spec.roles = {std::move(evaluator)};
  absl::StrAppend(&spec.name, "-evaluate");
  spec.policies = {};
  spec.notebook = nullptr;
  return spec;
}

// Returns the target of the evaluation: that of the training, without its machines, overridden by
// the options.
VertexTarget TargetFor(const VertexTarget& training, const VertexEvaluation& evaluation) {
  VertexTarget target{.project = training.project,
                      .region = training.region,
                      .bucket = training.bucket,
                      .image = training.image};
  if (!evaluation.run.rebuild) target.run.packages = training.run.packages;
  evaluation.target.AddTo(target);
  evaluation.run.AddTo(target);
  return target;
}

absl::StatusOr<Submission> SubmissionOf(Context& context, vertex::VertexPlatform& platform,
                                        const VertexEvaluation& evaluation) {
  const std::string folder(absl::StripSuffix(evaluation.train_folder, "/"));
  MUSTER_ASSIGN_OR_RETURN(Submission training, platform.ReadTraining(folder));
  if (training.spec.train.is_null()) {
    return absl::FailedPreconditionError(absl::StrCat(
        folder,
        ": the job has no `train` section, and only a model of the built-in trainer can be ",
        "measured"));
  }
  Submission submission{.source_name = folder,
                        .source = training.source,
                        .working_dir = training.working_dir,
                        .trainer = training.trainer,
                        .created = absl::Now(),
                        .send_home = evaluation.send_home};
  submission.spec = EvaluatorOf(training.spec, evaluation);
  if (evaluation.run.rebuild) {
    MUSTER_RETURN_IF_ERROR(context.CheckWorkingDir());
    submission.working_dir = context.working_dir();
    submission.spec =
        vertex::MovePaths(submission.spec, training.working_dir, submission.working_dir);
  }
  submission.target = TargetFor(TargetOf<VertexTarget>(training), evaluation);
  MUSTER_RETURN_IF_ERROR(ChooseJobId(context, evaluation.run.job_id, "eval", submission));
  submission.spec.roles.front().command.push_back(ResultFile(submission));
  return submission;
}

absl::Status ShowResult(Context& context, const std::string& file, bool json) {
  storage::Storage storage;
  MUSTER_ASSIGN_OR_RETURN(const storage::Url url, storage::ParseUrl(file));
  MUSTER_ASSIGN_OR_RETURN(storage::FileSystem * files, storage.For(url));
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadWhole(*files, url, kMaxResult));
  const nlohmann::json result = ParseJson(text);
  const auto metrics = result.is_object() ? result.find("metrics") : result.end();
  if (!result.is_object() || metrics == result.end() || !metrics->is_object()) {
    return absl::DataLossError(absl::StrCat(file, ": is no result of an evaluation"));
  }
  Terminal& out = context.out();
  if (json) {
    PrintJson(out, result);
    return absl::OkStatus();
  }
  const auto number = [&result](const char* key) {
    const auto found = result.find(key);
    return found != result.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
  };
  Table table({"METRIC", "VALUE"}, 1);
  for (const auto& [name, value] : metrics->items()) {
    if (value.is_number()) {
      table.Add({Printable(name), absl::StrFormat("%.6g", value.get<double>())});
    }
  }
  out.PrintLine(absl::StrCat("Step ", number("step"), ", split ",
                             Printable(storage::TextMember(result, "split")), ", ",
                             Plural(number("examples"), "example"), "; ", file));
  out.Print(table.Render(out));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> EvaluateOnVertex(Context& context, const VertexEvaluation& evaluation) {
  vertex::VertexPlatform& platform = context.vertex();
  MUSTER_ASSIGN_OR_RETURN(Submission submission, SubmissionOf(context, platform, evaluation));
  MUSTER_RETURN_IF_ERROR(platform.Prepare(submission));
  MUSTER_ASSIGN_OR_RETURN(UniqueFd lock, LockSubmissions(context));
  MUSTER_ASSIGN_OR_RETURN(const bool taken, TakeId(context, submission));
  if (!taken) {
    return absl::AlreadyExistsError(
        absl::StrCat("another job has taken the id '", submission.id, "' just now; try again"));
  }
  const HeldInterrupts held;
  MUSTER_ASSIGN_OR_RETURN(const JobRecord job,
                          SubmitJob(context, submission, "vertex", std::move(lock)));
  const std::string file = ResultFile(submission);
  context.err().Note(absl::StrCat("started ", job.id, "; the result will be ", file));
  if (evaluation.detach) return kSuccess;
  const int code = Attach(context, job, {.owns_job = true});
  if (code != kSuccess) return code;
  MUSTER_RETURN_IF_ERROR(ShowResult(context, file, evaluation.json));
  return kSuccess;
}

}  // namespace muster::cli
