// muster evaluate, muster predict: run the built-in trainer on a model that it has trained.
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "checkpoint/store.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/evaluate_vertex.h"
#include "cli/job_lookup.h"
#include "cli/target_options.h"
#include "cli/training.h"
#include "process/exit_status.h"
#include "process/spawn.h"
#include "supervise/job_dir.h"

namespace muster::cli {
namespace {

struct EvaluateOptions {
  std::string job;
  std::string split;
  std::string which = "latest";
  std::string to;
  bool json = false;
  bool force = false;
  // For Vertex AI, where the folder of a run replaces the job.
  std::string train_folder;
  TargetOptions target;
  VertexRunOptions vertex;
  bool send_home = false;
  bool detach = false;
};

// Ignores SIGINT for the lifetime of the object. The terminal sends Ctrl-C to the trainer too, and
// its exit code becomes that of this command.
class IgnoredInterrupts {
 public:
  IgnoredInterrupts() : previous_(::signal(SIGINT, SIG_IGN)) {}
  ~IgnoredInterrupts() { ::signal(SIGINT, previous_); }
  IgnoredInterrupts(const IgnoredInterrupts&) = delete;
  IgnoredInterrupts& operator=(const IgnoredInterrupts&) = delete;

 private:
  sighandler_t previous_;
};

// Returns the environment of a standalone task. Removes TF_CONFIG and MUSTER_ variables, which may
// belong to another task that this shell was set up for.
std::map<std::string, std::string> TrainerEnvironment(const JobRecord& job) {
  std::map<std::string, std::string> env = CurrentEnvironment();
  std::erase_if(env, [](const auto& variable) {
    const std::string& name = variable.first;
    const bool stays =
        name == "MUSTER_HOME" || name == "MUSTER_CACHE" || absl::StartsWith(name, "MUSTER_HDFS_");
    return name == "TF_CONFIG" || (absl::StartsWith(name, "MUSTER_") && !stays);
  });
  env["MUSTER_TRAIN_CONFIG"] = JobDir(job.directory).train_config();
  env["MUSTER_MODEL_DIR"] = job.model_dir;
  env["MUSTER_JOB_NAME"] = job.name;
  env["MUSTER_JOB_ID"] = job.id;
  return env;
}

// Runs the trainer in the foreground and returns its exit code.
absl::StatusOr<int> RunTrainer(Context& context, const SpawnOptions& options) {
  context.out().Flush();
  const IgnoredInterrupts ignored;
  MUSTER_ASSIGN_OR_RETURN(const pid_t pid, Spawn(options));
  int wait_status = 0;
  while (::waitpid(pid, &wait_status, 0) < 0) {
    if (errno != EINTR) return absl::ErrnoToStatus(errno, "waiting for muster-trainer");
  }
  const ExitStatus status = ExitStatus::FromWait(wait_status);
  if (status.signal() != 0 && status.signal() != SIGINT) {
    context.err().Error(absl::StrCat("muster-trainer was ", status.Describe()));
  }
  return status.code();
}

absl::StatusOr<int> EvaluateThere(Context& context, const EvaluateOptions& options) {
  if (!options.job.empty()) {
    return absl::InvalidArgumentError("either a JOB or a --train-folder says which model");
  }
  const std::string& platform = options.target.platform;
  if (!platform.empty() && platform != "vertex") {
    return absl::InvalidArgumentError("--train-folder is for --on vertex; elsewhere name the JOB");
  }
  const absl::Status which = checkpoint::StepOf("", options.which).status();
  if (absl::IsInvalidArgument(which)) return which;
  return EvaluateOnVertex(context, {.train_folder = options.train_folder,
                                    .split = options.split,
                                    .which = options.which,
                                    .target = options.target.vertex,
                                    .run = options.vertex,
                                    .send_home = options.send_home,
                                    .detach = options.detach,
                                    .json = options.json});
}

// Rejects options for Vertex AI if the model is evaluated on this machine.
absl::Status CheckHere(const EvaluateOptions& options) {
  const std::string given = options.vertex.FirstGiven();
  if (options.target.platform.empty() && given.empty() && !options.target.vertex.given() &&
      !options.detach) {
    return options.job.empty() ? absl::InvalidArgumentError("which model? Name its JOB")
                               : absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(given.empty() ? "--on, --project, --region and --detach are" : given + " is",
                   " for --train-folder gs://BUCKET/muster_ID: a JOB is evaluated here"));
}

absl::StatusOr<int> Evaluate(Context& context, const std::string& verb,
                             const EvaluateOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const JobRecord job, FindJob(context, options.job));
  MUSTER_ASSIGN_OR_RETURN(const Submission submission, TrainSubmission(job));
  const absl::Status which = checkpoint::StepOf(job.model_dir, options.which).status();
  if (absl::IsInvalidArgument(which)) return which;
  const auto trainer = context.FindTrainer();
  if (!trainer.ok()) {
    return absl::NotFoundError(
        "muster-trainer, which does this, is neither beside muster nor in PATH; install it");
  }
  std::string split = options.split;
  if (split.empty()) {
    const auto section = submission.spec.train.value("evaluate", nlohmann::json::object());
    split = section.value("split", "test");
  }
  SpawnOptions spawn{.argv = {*trainer, verb, "--split", split, "--checkpoint", options.which},
                     .env = TrainerEnvironment(job),
                     .working_dir = submission.working_dir,
                     .parent_death_signal = SIGTERM};
  if (options.json) spawn.argv.push_back("--json");
  if (!options.to.empty()) {
    MUSTER_RETURN_IF_ERROR(context.CheckWorkingDir());
    spawn.argv.insert(spawn.argv.end(), {"--to", AbsolutePath(options.to, context.working_dir())});
  }
  if (options.force) spawn.argv.emplace_back("--force");
  return RunTrainer(context, spawn);
}

void AddOptions(Command& command, EvaluateOptions& options) {
  command.Argument("JOB", &options.job, "The job; it may still be running");
  command.Option("--split", &options.split,
                 "Part of the data (default: that of the job's evaluations, else test)");
  command.Option("--checkpoint", &options.which, "Which model: STEP, best or latest");
}

}  // namespace

void AddEvaluateCommand(Command& program, Context& context) {
  Command& command = program.AddCommand("evaluate", "Measure the model that a job has trained");
  auto options = std::make_shared<EvaluateOptions>();
  AddOptions(command, *options);
  command.Flag("--json", &options->json, "Print JSON");
  command.Option("--on", &options->target.platform, "Platform: vertex, with --train-folder");
  command.Group(kVertexGroup);
  command.Option("--train-folder", &options->train_folder,
                 "Instead of a JOB: the folder of its run, gs://BUCKET/muster_ID");
  AddVertexTargetOptions(command, &options->target.vertex);
  AddVertexJobOptions(command, &options->vertex);
  command.Group(kVertexGroup);
  command.Flag("--send-home", &options->send_home,
               "With --rebuild: send the working directory even when it is your home folder");
  command.Flag("-d,--detach", &options->detach, "Start it in the background and return");
  command.Group("");
  command.OnCall([&context, options]() -> absl::StatusOr<int> {
    if (!options->train_folder.empty()) return EvaluateThere(context, *options);
    MUSTER_RETURN_IF_ERROR(CheckHere(*options));
    return Evaluate(context, "evaluate", *options);
  });
}

void AddPredictCommand(Command& program, Context& context) {
  Command& command =
      program.AddCommand("predict", "Write what the model of a job says of each example");
  auto options = std::make_shared<EvaluateOptions>();
  AddOptions(command, *options);
  command.Option("--to", &options->to, "The file to write; or a URL");
  command.Flag("--force", &options->force, "Replace the file if it exists");
  command.OnCall([&context, options]() -> absl::StatusOr<int> {
    if (options->job.empty()) return absl::InvalidArgumentError("which model? Name its JOB");
    if (!options->to.empty()) return Evaluate(context, "predict", *options);
    return absl::InvalidArgumentError("predict needs --to FILE, the file to write");
  });
}

}  // namespace muster::cli
