// muster env: prints the environment of one task, to run it by hand.
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/terminal_text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/job_lookup.h"
#include "cli/print_json.h"
#include "cli/submit.h"
#include "cli/target_options.h"
#include "cluster/tf_config.h"
#include "job/job_tls.h"
#include "nlohmann/json.hpp"
#include "platform/local/addresses.h"
#include "platform/local/launch.h"
#include "supervise/job_dir.h"

namespace muster::cli {
namespace {

struct EnvOptions {
  std::string job;
  TargetOptions target;
  std::string role;
  int index = 0;
  bool cluster = false;
  std::string certificates;
  std::string format = "shell";
};

struct Described {
  Submission submission;
  ClusterSpec cluster;
  std::string platform = "local";
};

// Port of the first task without an address, by TensorFlow's convention.
constexpr int kFirstPort = 2222;

// Returns addresses for a job that is not running. Ports are consecutive from kFirstPort: separate
// invocations, one for each task, must print the same cluster.
ClusterSpec CountedAddresses(const JobSpec& spec) {
  ClusterSpec cluster = local::PlanAddresses(spec, {});
  int port = kFirstPort;
  for (const TaskId& task : spec.Tasks()) {
    if (cluster.AddressOf(task) == kUnassigned) {
      cluster.Set(task, absl::StrCat("127.0.0.1:", port++));
    }
  }
  return cluster;
}

absl::StatusOr<Described> Describe(Context& context, const std::string& reference,
                                   const TargetOptions& target) {
  Described described;
  if (IsFile(context, reference)) {
    MUSTER_ASSIGN_OR_RETURN(described.submission, LoadSubmission(context, reference));
    described.submission.id = described.submission.spec.name;  // deterministic, for the same reason
    described.cluster = CountedAddresses(described.submission.spec);
    return described;
  }
  MUSTER_ASSIGN_OR_RETURN(const JobRecord job, FindJob(context, reference, target));
  MUSTER_ASSIGN_OR_RETURN(described.submission, JobDir(job.directory).LoadSubmission());
  described.platform = job.platform;
  MUSTER_ASSIGN_OR_RETURN(History * history, context.history());
  MUSTER_ASSIGN_OR_RETURN(const auto tasks, history->Tasks(job.id));
  for (const TaskRecord& task : tasks) described.cluster.Set(task.id, task.address);
  return described;
}

// Returns the folder of the job's certificates, created if absent, or "" if none is requested.
absl::StatusOr<std::string> CertificatesOf(Context& context, const EnvOptions& options,
                                           const Described& described) {
  if (options.certificates.empty()) return "";
  MUSTER_RETURN_IF_ERROR(context.CheckWorkingDir());
  const std::string folder = AbsolutePath(options.certificates, context.working_dir());
  MUSTER_RETURN_IF_ERROR(EnsureJobTls(described.submission.spec.name, folder));
  context.err().PrintLine(absl::StrCat(
      "copy ca.crt, tls.crt and tls.key of ", Printable(folder),
      " to every host, readable by the user of the tasks alone, and set MUSTER_TLS_DIR to where "
      "they are there: whoever has the key belongs to the job"));
  return folder;
}

void PrintLaunch(Terminal& out, const TaskLaunch& launch, bool json) {
  if (json) {
    PrintJson(out, nlohmann::json(launch.env));
    return;
  }
  for (const auto& [name, value] : launch.env) {
    out.PrintData(absl::StrCat("export ", name, "=", ShellQuote(value), "\n"));
  }
  // Comments out every line of the command, so that the output can be sourced.
  const std::string command = absl::StrReplaceAll(ShellJoin(launch.argv), {{"\n", "\n# "}});
  out.PrintData(absl::StrCat("# then: ", command, "\n"));
}

absl::StatusOr<int> Env(Context& context, const EnvOptions& options) {
  Terminal& out = context.out();
  MUSTER_ASSIGN_OR_RETURN(const Described described,
                          Describe(context, options.job, options.target));
  MUSTER_ASSIGN_OR_RETURN(const std::string certificates,
                          CertificatesOf(context, options, described));
  if (options.cluster) {
    const auto config =
        nlohmann::ordered_json::parse(WriteTfConfig({.cluster = described.cluster}));
    PrintJson(out, config["cluster"]);
    return kSuccess;
  }
  if (options.role.empty()) {
    if (!certificates.empty()) return kSuccess;
    return absl::InvalidArgumentError(
        "which task? muster env JOB ROLE INDEX, or --cluster for all");
  }
  MUSTER_ASSIGN_OR_RETURN(TaskId task, TaskId::Parse(options.role));
  if (options.role.find(':') == std::string::npos) task.index = options.index;
  std::vector<TaskRecord> tasks;
  for (const TaskId& id : described.submission.spec.Tasks()) tasks.push_back({.id = id});
  MUSTER_RETURN_IF_ERROR(SelectTasks(tasks, {task.ToString()}).status());
  MUSTER_ASSIGN_OR_RETURN(Platform * platform, context.platform(described.platform));
  MUSTER_ASSIGN_OR_RETURN(TaskLaunch launch,
                          platform->LaunchOf(described.submission, described.cluster, task));
  // A task that Muster does not run has no job folder.
  for (const char* name :
       {"MUSTER_PROGRESS_FILE", "MUSTER_SOCKET_DIR", "TORCHELASTIC_ERROR_FILE", "MUSTER_JOB_ID"}) {
    launch.env.erase(name);
  }
  if (!certificates.empty()) launch.env["MUSTER_TLS_DIR"] = certificates;
  if (const auto& train = described.submission.spec.train; !train.is_null()) {
    launch.env["MUSTER_TRAIN_CONFIG"] =
        train.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  PrintLaunch(out, launch, options.format == "json");
  return kSuccess;
}

}  // namespace

void AddEnvCommand(Command& program, Context& context) {
  Command& command =
      program.AddCommand("env", "Print TF_CONFIG and the other variables of one task");
  auto options = std::make_shared<EnvOptions>();
  command.Argument("JOB", &options->job, "A job file, or a job", Presence::kRequired);
  command.Argument("ROLE", &options->role, "The task's role, or the task as in worker:1");
  command.Argument("INDEX", &options->index, "Its index");
  command.Flag("--cluster", &options->cluster,
               "Print the addresses of all tasks (the ClusterSpec)");
  command.Option("--certificates", &options->certificates,
                 "A folder for the job's certificates, by which its tasks on several machines know "
                 "each other; made when it is not there");
  command.Option("--format", &options->format, "shell or json", {"shell", "json"});
  AddTargetOptions(command, &options->target);
  command.OnCall([&context, options] { return Env(context, *options); });
}

}  // namespace muster::cli
