#include "platform/vertex/evaluation.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "job/format/train_section.h"
#include "platform/vertex/overrides.h"
#include "platform/vertex/path_rewrite.h"
#include "platform/vertex/run_folder.h"

namespace muster::vertex {
namespace {

// Returns the training job reduced to one evaluator task.
job::JobSpec EvaluatorOf(job::JobSpec spec, const platform::EvaluationRequest& request) {
  job::RoleSpec evaluator{.name = "evaluator"};
  for (const job::RoleSpec& role : spec.roles) {
    if (role.command.empty() && evaluator.image.empty()) evaluator.image = role.image;
    if (role.command.empty()) evaluator.env.insert(role.env.begin(), role.env.end());
  }
  const std::string split =
      request.split.empty() ? job::EvaluationSplit(spec.train) : request.split;
  evaluator.command = {"muster-trainer", "evaluate",   "--split", split,
                       "--checkpoint",   request.which};
  spec.roles = {std::move(evaluator)};
  absl::StrAppend(&spec.name, "-evaluate");
  spec.policies = {};
  spec.notebook = nullptr;
  return spec;
}

// Returns the target of the evaluation: that of the training, without its machines, overridden by
// the request.
job::VertexTarget TargetFor(const job::VertexTarget& training, const job::VertexTarget& asked) {
  job::VertexTarget target{.project = training.project,
                           .region = training.region,
                           .bucket = training.bucket,
                           .folder_prefix = training.folder_prefix,
                           .image = training.image};
  if (!asked.rebuild) target.run.packages = training.run.packages;
  target = std::get<job::VertexTarget>(job::InheritTarget(target, asked));
  target.bucket = BucketName(target.bucket);
  return target;
}

absl::StatusOr<job::Submission> ReadTraining(storage::Storage& storage, const std::string& folder) {
  auto run = ReadNewest(storage, folder);
  if (!absl::IsNotFound(run.status())) return run;
  return absl::NotFoundError(absl::StrCat(
      run.status().message(),
      "; --train-folder is the folder of a run that Muster has started, gs://BUCKET/muster_ID"));
}

}  // namespace

absl::StatusOr<job::Submission> EvaluationOf(storage::Storage& storage,
                                             const platform::EvaluationRequest& request) {
  MUSTER_ASSIGN_OR_RETURN(std::string folder, BucketUrl("--train-folder", request.train_folder));
  folder = std::string(absl::StripSuffix(folder, "/"));
  const auto& asked = std::get<job::VertexTarget>(request.target);
  MUSTER_ASSIGN_OR_RETURN(job::Submission training, ReadTraining(storage, folder));
  if (training.spec.train.is_null()) {
    return absl::FailedPreconditionError(absl::StrCat(
        folder,
        ": the job has no `train` section, and only a model of the built-in trainer can be ",
        "measured"));
  }
  job::Submission submission{.source_name = folder,
                             .source = training.source,
                             .working_dir = training.working_dir,
                             .trainer = training.trainer,
                             .created = absl::Now(),
                             .send_home = request.send_home};
  submission.spec = EvaluatorOf(training.spec, request);
  if (asked.rebuild) {
    if (request.working_dir.empty()) {
      return absl::FailedPreconditionError("--rebuild: the current directory no longer exists");
    }
    submission.working_dir = request.working_dir;
    submission.spec = MovePaths(submission.spec, training.working_dir, submission.working_dir);
  }
  submission.target = TargetFor(job::TargetOf<job::VertexTarget>(training), asked);
  return submission;
}

std::string SetResultFile(job::Submission& submission) {
  const std::string file =
      absl::StrCat(submission.spec.model_dir, "/eval/", submission.id, ".json");
  const std::string own = absl::StrCat(
      job::TargetOf<job::VertexTarget>(submission).FolderOf(submission.id), "/result.json");
  std::vector<std::string>& command = submission.spec.roles.front().command;
  command.insert(command.end(), {"--to", own, "--to", file});
  return file;
}

}  // namespace muster::vertex
