#include "jobs/start/trainer_command.h"

#include <signal.h>

#include <utility>

#include "absl/strings/match.h"
#include "base/status_macros.h"
#include "checkpoint/store.h"
#include "job/format/train_section.h"
#include "jobs/results/results.h"
#include "supervise/job_dir.h"

namespace muster::jobs {
namespace {

// Turns the caller's environment into that of a standalone task. Removes TF_CONFIG and MUSTER_
// variables, which may belong to another task that the caller's shell was set up for.
void SetTaskEnvironment(const job::JobRecord& job, std::map<std::string, std::string>& env) {
  std::erase_if(env, [](const auto& variable) {
    const std::string& name = variable.first;
    const bool stays =
        name == "MUSTER_HOME" || name == "MUSTER_CACHE" || absl::StartsWith(name, "MUSTER_HDFS_");
    return name == "TF_CONFIG" || (absl::StartsWith(name, "MUSTER_") && !stays);
  });
  env["MUSTER_TRAIN_CONFIG"] = supervise::JobDir(job.directory).train_config();
  env["MUSTER_MODEL_DIR"] = job.model_dir;
  env["MUSTER_JOB_NAME"] = job.name;
  env["MUSTER_JOB_ID"] = job.id;
}

}  // namespace

absl::StatusOr<process::SpawnOptions> TrainerCommand(const Service& service,
                                                     const job::JobRecord& job,
                                                     const TrainerRequest& request,
                                                     std::map<std::string, std::string> env) {
  MUSTER_ASSIGN_OR_RETURN(const job::Submission submission, TrainSubmission(job));
  // The trainer itself reports a checkpoint that does not exist.
  const absl::Status which = checkpoint::StepOf(job.model_dir, request.checkpoint).status();
  if (absl::IsInvalidArgument(which)) return which;
  const auto trainer = service.FindTrainer();
  if (!trainer.ok()) {
    return absl::NotFoundError("muster-trainer is neither beside muster nor in PATH; install it");
  }
  SetTaskEnvironment(job, env);
  const bool predicts = request.action == TrainerRequest::Action::kPredict;
  process::SpawnOptions spawn{
      .argv = {*trainer, predicts ? "predict" : "evaluate", "--split",
               request.split.empty() ? job::EvaluationSplit(submission.spec.train) : request.split,
               "--checkpoint", request.checkpoint},
      .env = std::move(env),
      .working_dir = submission.working_dir,
      .parent_death_signal = SIGTERM};
  if (request.json) spawn.argv.emplace_back("--json");
  if (!request.to.empty()) spawn.argv.insert(spawn.argv.end(), {"--to", request.to});
  if (request.force) spawn.argv.emplace_back("--force");
  return spawn;
}

}  // namespace muster::jobs
