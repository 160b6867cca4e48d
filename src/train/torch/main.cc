#include "train/torch/main.h"

#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "checkpoint/store.h"
#include "nlohmann/json.hpp"
#include "storage/storage.h"
#include "train/ps/server.h"
#include "train/run/model_dir.h"
#include "train/run/peer.h"
#include "train/torch/evaluation.h"
#include "train/torch/model/dataset_adapter.h"
#include "train/torch/model/export.h"
#include "train/torch/model/models.h"
#include "train/torch/specs.h"
#include "train/torch/torch_status.h"
#include "train/torch/trainer.h"
#include "train/wire/grpc_transport.h"

namespace muster::train {
namespace {

constexpr int kFailed = 1;
// 128 + SIGUSR1: a retryable error to every launcher that follows the TFJob convention.
constexpr int kLostPeers = 138;
// Delays the exit of a task that lost a peer, so that the launcher sees the peer's exit first and
// reports it as the cause.
constexpr absl::Duration kLostPeersExitDelay = absl::Milliseconds(500);
constexpr absl::Duration kServerGrace = absl::Seconds(10);

void Log(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

struct Arguments {
  cluster::TaskFlags flags;
  std::string split;
  std::string checkpoint = "latest";
  std::string to;
  std::vector<std::string> results;  // of evaluate
  std::string model_dir;
  bool json = false;
  bool force = false;  // replace a file at `to`
};

// Makes malloc keep freed memory. Every step allocates and frees blocks of a few MB; returning them
// to the system would cost a page fault for each page.
void KeepMemory() {
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

absl::StatusOr<std::unique_ptr<wire::Transport>> TransportOf(const Environment& environment) {
  if (environment.tls_dir.empty()) {
    return std::make_unique<wire::GrpcTransport>(
        std::nullopt,
        environment.plaintext ? wire::Plaintext::kAnywhere : wire::Plaintext::kLoopbackOnly);
  }
  auto tls = wire::Tls::Read(environment.tls_dir);
  if (!tls.ok()) return base::Annotate(tls.status(), "the job's certificates (MUSTER_TLS_DIR)");
  return std::make_unique<wire::GrpcTransport>(*std::move(tls));
}

// Serves one job. Without a `timeout` waits for its tasks forever.
absl::Status Serve(const Environment& environment, std::optional<absl::Duration> timeout) {
  // A server with a timeout exits by itself after the job; a SIGTERM must not interrupt that.
  std::function<void()> on_finish;
  if (timeout) on_finish = [] { ::signal(SIGTERM, SIG_IGN); };
  MUSTER_ASSIGN_OR_RETURN(const auto transport, TransportOf(environment));
  ParameterServer server({.self = environment.self,
                          .training_tasks = environment.TrainingTasks(),
                          .cluster = ClusterText(environment),
                          .log = Log,
                          .on_finish = std::move(on_finish)});
  const std::string address = environment.AddressOf(environment.self);
  MUSTER_ASSIGN_OR_RETURN(
      const auto listener,
      transport->Listen(address, [&](wire::Connection& connection, const wire::Caller& caller) {
        server.Serve(connection, caller);
      }));
  Log(absl::StrCat("serving at ", address));
  return server.Run(timeout.value_or(absl::InfiniteDuration()), kServerGrace);
}

// Returns how long a server waits for tasks. Tasks that wait for another server, or restart, are
// not connected to this one. Their own timeouts must expire first.
absl::Duration ServerTimeout(const Environment& environment) {
  const RunConfig defaults{};
  return environment.peer_timeout.value_or(defaults.peer_timeout) +
         environment.start_timeout.value_or(defaults.start_timeout);
}

// Serves one job after another, until the process is stopped.
absl::Status ServeForever(const Environment& environment) {
  while (true) MUSTER_RETURN_IF_ERROR(Serve(environment, std::nullopt));
}

std::string ModelDirOf(const Environment& environment, const Experiment& experiment) {
  return environment.model_dir.empty() ? experiment.run.model_dir : environment.model_dir;
}

absl::Status PlayRole(Environment environment, const ExperimentFactory& make) {
  if (environment.self.role == "ps") return Serve(environment, ServerTimeout(environment));
  MUSTER_ASSIGN_OR_RETURN(Experiment experiment, make(environment));
  MUSTER_RETURN_IF_ERROR(CheckExperiment(experiment));
  if (environment.start_timeout) experiment.run.start_timeout = *environment.start_timeout;
  if (environment.peer_timeout) experiment.run.peer_timeout = *environment.peer_timeout;
  MUSTER_ASSIGN_OR_RETURN(const auto model_dir,
                          ModelDir::Open(ModelDirOf(environment, experiment), environment, Log));
  environment.model_dir = model_dir->folder();
  if (environment.self.role == "evaluator") {
    return EvaluateUntilFinal(experiment, environment, *model_dir, Log);
  }
  if (environment.Rank() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(environment.self.ToString(),
                     " has no role in training; roles are chief, worker, ps and evaluator"));
  }
  if (experiment.train.strategy.empty()) {
    experiment.train.strategy = environment.Servers() > 0 ? "sync" : "allreduce";
  }
  MUSTER_ASSIGN_OR_RETURN(const auto transport, TransportOf(environment));
  return Trainer(experiment, environment, *model_dir, *transport, Log).Run();
}

absl::Status RunTask(const Environment& environment, const ExperimentFactory& make) {
  const absl::Status status = PlayRole(environment, make);
  // A first attempt that finds no peers is most likely misconfigured: a final error. A later
  // attempt was started by a launcher that restarts the other tasks, too, and limits the attempts.
  if (environment.attempt > 0 && absl::IsDeadlineExceeded(status)) {
    return absl::UnavailableError(status.message());
  }
  return status;
}

struct Loaded {
  Experiment experiment;
  std::unique_ptr<Model> model;
  int64_t step = 0;
};

// Loads the model with the checkpoint that the user selects.
absl::StatusOr<Loaded> Load(const Environment& environment, const ExperimentFactory& make,
                            const Arguments& arguments) {
  Loaded loaded;
  MUSTER_ASSIGN_OR_RETURN(loaded.experiment, make(environment));
  MUSTER_RETURN_IF_ERROR(CheckExperiment(loaded.experiment));
  if (!arguments.split.empty()) loaded.experiment.evaluate.split = arguments.split;
  const std::string place = ModelDirOf(environment, loaded.experiment);
  if (place.empty()) {
    return absl::InvalidArgumentError("no model dir; pass --model_dir");
  }
  Environment own = environment;
  // A working folder of its own: the chief, which may be running, has another.
  own.self = {"process", static_cast<int>(::getpid())};
  MUSTER_ASSIGN_OR_RETURN(const auto model_dir, ModelDir::Open(place, own, Log));
  MUSTER_RETURN_IF_ERROR(model_dir->FetchWhich(arguments.checkpoint));
  MUSTER_ASSIGN_OR_RETURN(const checkpoint::Checkpoint stored,
                          checkpoint::Find(model_dir->folder(), arguments.checkpoint));
  loaded.step = stored.step();
  MUSTER_ASSIGN_OR_RETURN(loaded.model, loaded.experiment.model());
  MUSTER_RETURN_IF_ERROR(LoadCheckpoint(stored, *loaded.model));
  return loaded;
}

absl::Status RunEvaluate(const Environment& environment, const ExperimentFactory& make,
                         const Arguments& arguments) {
  MUSTER_ASSIGN_OR_RETURN(const Loaded loaded, Load(environment, make, arguments));
  const std::string& split = loaded.experiment.evaluate.split;
  MUSTER_ASSIGN_OR_RETURN(EvalResult result,
                          EvaluateModel(loaded.experiment, *loaded.model, split));
  result.step = loaded.step;
  nlohmann::json json = {{"step", result.step}, {"examples", result.examples}, {"split", split}};
  for (const auto& [name, value] : result.metrics) json["metrics"][name] = value;
  Log(arguments.json ? json.dump() : ToString(result, loaded.experiment.name, split));
  for (const std::string& file : arguments.results) {
    MUSTER_RETURN_IF_ERROR(storage::WriteAt(file, json.dump()));
  }
  return absl::OkStatus();
}

absl::Status RunPredict(const Environment& environment, const ExperimentFactory& make,
                        const Arguments& arguments) {
  if (!arguments.force) MUSTER_RETURN_IF_ERROR(storage::CheckIsFree(arguments.to));
  MUSTER_ASSIGN_OR_RETURN(const Loaded loaded, Load(environment, make, arguments));
  MUSTER_RETURN_IF_ERROR(PredictToFile(loaded.experiment, *loaded.model,
                                       loaded.experiment.evaluate.split, arguments.to));
  Log(absl::StrCat("wrote ", arguments.to));
  return absl::OkStatus();
}

absl::Status RunExport(const Environment& environment, const ExperimentFactory& make,
                       const Arguments& arguments) {
  if (!arguments.force) MUSTER_RETURN_IF_ERROR(storage::CheckIsFree(arguments.to));
  MUSTER_ASSIGN_OR_RETURN(const Loaded loaded, Load(environment, make, arguments));
  MUSTER_ASSIGN_OR_RETURN(const std::string exported,
                          ExportModel(loaded.experiment, *loaded.model, arguments.to));
  Log(absl::StrCat("wrote ", exported));
  return absl::OkStatus();
}

int Report(const absl::Status& status, const Environment& environment) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "error: %s\n", std::string(status.message()).c_str());
  const bool lost = LostPeers(status);
  if (lost) absl::SleepFor(kLostPeersExitDelay);
  if (!environment.error_file.empty()) {
    const nlohmann::json error = {
        {"message",
         {{"message", std::string(status.message())},
          {"extraInfo", {{"timestamp", absl::StrCat(absl::ToUnixSeconds(absl::Now()))}}}}}};
    base::ReplaceFile(environment.error_file,
                      error.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
        .IgnoreError();
  }
  return lost ? kLostPeers : kFailed;
}

void AddOptions(CLI::App& app, Arguments& arguments) {
  app.add_option("--job_name", arguments.flags.job_name, "This task's role: ps, worker, chief");
  app.add_option("--task_index", arguments.flags.task_index, "Its index in the role");
  app.add_option("--ps_hosts", arguments.flags.ps_hosts, "host:port,… of the ps tasks");
  app.add_option("--worker_hosts", arguments.flags.worker_hosts, "host:port,… of the workers");
  app.add_option("--model_dir", arguments.model_dir, "The folder or URL of the checkpoints");
  const auto checkpointed = [&](const char* name, const char* what) {
    CLI::App* command = app.add_subcommand(name, what);
    command->add_option("--checkpoint", arguments.checkpoint, "A step, best or latest");
    command->add_option("--model_dir", arguments.model_dir, "The folder or URL of the checkpoints");
    return command;
  };
  CLI::App* evaluate = checkpointed("evaluate", "Evaluate a checkpoint");
  evaluate->add_option("--split", arguments.split, "The split to evaluate on");
  evaluate->add_flag("--json", arguments.json, "Print one JSON object");
  evaluate
      ->add_option("--to", arguments.results,
                   "Also write the JSON object to this file or URL; may be repeated")
      ->allow_extra_args(false);
  CLI::App* predict = checkpointed("predict", "Write the model's outputs for a split");
  predict->add_option("--split", arguments.split, "The split to predict");
  predict->add_option("--to", arguments.to, "The CSV file or URL to write")->required();
  CLI::App* exporting = checkpointed("export", "Write a checkpoint's model");
  exporting
      ->add_option("--to", arguments.to, "FILE.pt (TorchScript) or FILE.safetensors; also a URL")
      ->required();
  app.add_subcommand("serve", "Run a parameter server, whatever the role, until it is stopped");
  for (CLI::App* command : {predict, exporting}) {
    command->add_flag("--force", arguments.force, "Replace the file if it exists");
  }
  app.require_subcommand(0, 1);
}

}  // namespace

int RunMain(int argc, char** argv, const ExperimentFactory& make) {
  KeepMemory();
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // a write past the file size limit fails, as on a full disk
  // PID 1 of a container ignores signals that it does not handle.
  if (::getpid() == 1) ::signal(SIGTERM, [](int signal) { ::_exit(128 + signal); });
  Arguments arguments;
  CLI::App app("Runs one task of a training job; its role is read from TF_CONFIG or the flags");
  AddOptions(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  std::optional<cluster::TaskFlags> flags;
  if (!arguments.flags.job_name.empty()) flags = arguments.flags;
  auto environment = Environment::FromEnv(flags);
  if (!environment.ok()) return Report(environment.status(), {});
  if (!arguments.model_dir.empty()) environment->model_dir = arguments.model_dir;
  absl::Status status;
  const absl::Status caught = CatchTorch([&] {
    if (app.got_subcommand("evaluate")) {
      status = RunEvaluate(*environment, make, arguments);
    } else if (app.got_subcommand("predict")) {
      status = RunPredict(*environment, make, arguments);
    } else if (app.got_subcommand("export")) {
      status = RunExport(*environment, make, arguments);
    } else if (app.got_subcommand("serve")) {
      status = ServeForever(*environment);
    } else {
      status = RunTask(*environment, make);
    }
  });
  return Report(caught.ok() ? status : caught, *environment);
}

int Main(int argc, char** argv, const Experiment& experiment) {
  return RunMain(argc, argv, [&](const Environment& environment) -> absl::StatusOr<Experiment> {
    Experiment copy = experiment;
    if (copy.name == "model" && !environment.job_name.empty()) copy.name = environment.job_name;
    return copy;
  });
}

}  // namespace muster::train
