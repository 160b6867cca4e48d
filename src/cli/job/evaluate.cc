// muster evaluate, muster predict: run the built-in trainer on a model that it has trained.
#include "jobs/start/evaluate.h"

#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "base/text/terminal_text.h"
#include "base/text/units.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/job/attach.h"
#include "cli/job/target_options.h"
#include "cli/terminal/print_json.h"
#include "jobs/find/lookup.h"
#include "jobs/start/trainer_command.h"
#include "process/exit_status.h"
#include "process/held_signals.h"
#include "process/spawn.h"

namespace muster::cli {
namespace {

struct EvaluateOptions {
  std::string job;
  std::string split;
  std::string which = "latest";
  std::string to;
  bool json = false;
  bool force = false;
  // For a platform with RemoteEvaluation, where the folder of a run replaces the job.
  TargetOptions target;
  bool send_home = false;
  bool detach = false;
};

// Runs the trainer in the foreground and returns its exit code.
absl::StatusOr<int> RunTrainer(Context& context, const process::SpawnOptions& options) {
  context.out().Flush();
  // The terminal sends Ctrl-C to the trainer too, and its exit code becomes that of this command.
  const process::IgnoredSignal ignored(SIGINT);
  MUSTER_ASSIGN_OR_RETURN(const pid_t pid, process::Spawn(options));
  int wait_status = 0;
  while (::waitpid(pid, &wait_status, 0) < 0) {
    if (errno != EINTR) return absl::ErrnoToStatus(errno, "waiting for muster-trainer");
  }
  const process::ExitStatus status = process::ExitStatus::FromWait(wait_status);
  if (status.signal() != 0 && status.signal() != SIGINT) {
    context.err().Error(absl::StrCat("muster-trainer was ", status.Describe()));
  }
  return status.code();
}

absl::Status PrintEvaluation(Terminal& out, const std::string& file, bool json) {
  MUSTER_ASSIGN_OR_RETURN(const nlohmann::json result, jobs::ReadEvaluation(file));
  if (json) {
    PrintJson(out, result);
    return absl::OkStatus();
  }
  const auto number = [&result](const char* key) {
    const auto found = result.find(key);
    return found != result.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
  };
  Table table({"METRIC", "VALUE"}, 1);
  for (const auto& [name, value] : result["metrics"].items()) {
    if (value.is_number()) {
      table.Add({base::Printable(name), absl::StrFormat("%.6g", value.get<double>())});
    }
  }
  out.PrintLine(absl::StrCat("Step ", number("step"), ", split ",
                             base::Printable(base::TextMember(result, "split")), ", ",
                             base::Plural(number("examples"), "example"), "; ", file));
  out.Print(table.Render(out));
  return absl::OkStatus();
}

// Returns the platform whose option names the folder of a training run, or "" if none does.
std::string PlatformOfTrainFolder(Context& context, const TargetOptions& target) {
  for (const std::string& name : context.platforms().names()) {
    const platform::Options* options = target.Of(name);
    if (options != nullptr && !options->train_folder().empty()) return name;
  }
  return "";
}

// Evaluates the model by a job on the platform that trained it.
absl::StatusOr<int> EvaluateThere(Context& context, const EvaluateOptions& options,
                                  const std::string& platform) {
  if (!options.job.empty()) {
    return absl::InvalidArgumentError("JOB and --train-folder both select the model; give one");
  }
  if (!options.target.platform.empty() && options.target.platform != platform) {
    return absl::InvalidArgumentError(
        absl::StrCat("--train-folder requires --on ", platform, "; elsewhere, name the JOB"));
  }
  const platform::Options& there = *options.target.Of(platform);
  MUSTER_ASSIGN_OR_RETURN(const jobs::EvaluationPlan plan,
                          jobs::PlanEvaluation(context.jobs(),
                                               {.train_folder = there.train_folder(),
                                                .split = options.split,
                                                .which = options.which,
                                                .target = there.ToTarget(),
                                                .working_dir = context.working_dir(),
                                                .send_home = options.send_home},
                                               there.job_id()));
  const process::HeldSignals held({SIGINT});
  MUSTER_ASSIGN_OR_RETURN(const job::JobRecord job, jobs::StartEvaluation(context.jobs(), plan));
  context.err().Note(absl::StrCat("started ", job.id, "; the result will be ", plan.result));
  if (options.detach) return kSuccess;
  const int code = Attach(context, job, {.owns_job = true});
  if (code != kSuccess) return code;
  MUSTER_RETURN_IF_ERROR(PrintEvaluation(context.out(), plan.result, options.json));
  return kSuccess;
}

// Rejects options of a platform if the model is evaluated on this machine.
absl::Status CheckHere(const EvaluateOptions& options) {
  std::string given = options.target.FirstGiven().first;
  if (given.empty() && !options.target.platform.empty()) given = "--on";
  if (given.empty() && options.detach) given = "--detach";
  if (given.empty()) {
    return options.job.empty() ? absl::InvalidArgumentError(
                                     "missing JOB; usage: muster evaluate JOB (predict: muster "
                                     "predict JOB --to FILE)")
                               : absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      given, " requires --train-folder gs://BUCKET/muster_ID: a JOB is evaluated on this machine"));
}

// Evaluates the model on this machine, or writes its predictions to options.to.
absl::StatusOr<int> EvaluateHere(Context& context, const EvaluateOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const job::JobRecord job, jobs::FindJob(context.jobs(), options.job));
  jobs::TrainerRequest request{.split = options.split,
                               .checkpoint = options.which,
                               .json = options.json,
                               .force = options.force};
  if (!options.to.empty()) {
    MUSTER_RETURN_IF_ERROR(context.CheckWorkingDir());
    request.action = jobs::TrainerRequest::Action::kPredict;
    request.to = base::AbsolutePath(options.to, context.working_dir());
  }
  MUSTER_ASSIGN_OR_RETURN(
      const process::SpawnOptions spawn,
      jobs::TrainerCommand(context.jobs(), job, request, process::CurrentEnvironment()));
  return RunTrainer(context, spawn);
}

void AddOptions(Command& command, EvaluateOptions& options) {
  command.Argument("JOB", &options.job, "The job; it may still be running");
  command.Option("--split", &options.split,
                 "The split of the data (default: that of the job's evaluations, else test)");
  command.Option("--checkpoint", &options.which, "The checkpoint: STEP, best or latest");
}

}  // namespace

void AddEvaluateCommand(Command& program, Context& context) {
  Command& command = program.AddCommand("evaluate", "Evaluate the model that a job has trained");
  auto options = std::make_shared<EvaluateOptions>();
  AddOptions(command, *options);
  command.Flag("--json", &options->json, "Print JSON");
  options->target.AddTo(command, context, platform::OptionUse::kEvaluate);
  command.Flag("--send-home", &options->send_home,
               "With --rebuild: send the working directory even if it is your home folder or /");
  command.Flag("-d,--detach", &options->detach, "Start the job in the background and return");
  command.OnCall([&context, options]() -> absl::StatusOr<int> {
    const std::string platform = PlatformOfTrainFolder(context, options->target);
    if (!platform.empty()) return EvaluateThere(context, *options, platform);
    MUSTER_RETURN_IF_ERROR(CheckHere(*options));
    return EvaluateHere(context, *options);
  });
}

void AddPredictCommand(Command& program, Context& context) {
  Command& command =
      program.AddCommand("predict", "Write the predictions of a job's model for each example");
  auto options = std::make_shared<EvaluateOptions>();
  AddOptions(command, *options);
  command.Option("--to", &options->to, "The file or URL to write");
  command.Flag("--force", &options->force, "Replace the file if it exists");
  command.OnCall([&context, options]() -> absl::StatusOr<int> {
    if (options->job.empty())
      return absl::InvalidArgumentError(
          "missing JOB; usage: muster evaluate JOB (predict: muster predict JOB --to FILE)");
    if (!options->to.empty()) return EvaluateHere(context, *options);
    return absl::InvalidArgumentError("missing --to FILE, the file to write");
  });
}

}  // namespace muster::cli
