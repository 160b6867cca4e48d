// muster env: prints the environment of one task, to run it by hand.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/suggest.h"
#include "base/text/terminal_text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/job/job_file.h"
#include "cli/job/target_options.h"
#include "cli/terminal/print_json.h"
#include "cluster/tf_config.h"
#include "job/job_tls.h"
#include "jobs/find/lookup.h"
#include "jobs/start/launch_by_hand.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

struct EnvOptions {
  std::string job;
  job::Overrides overrides;
  TargetOptions target;
  std::string role;
  int index = 0;
  bool cluster = false;
  std::string certificates;
  std::string print;  // the name of one variable
  std::string format = "shell";
};

// Returns a job, or the job of a file, which has not been started.
absl::StatusOr<jobs::JobCluster> FindCluster(Context& context, const EnvOptions& options) {
  if (IsFile(context, options.job)) {
    MUSTER_ASSIGN_OR_RETURN(job::Submission submission,
                            LoadJobFile(context, options.job, options.overrides));
    MUSTER_ASSIGN_OR_RETURN(submission.target, options.target.ToTarget());
    return jobs::ClusterBeforeStart(context.jobs(), std::move(submission));
  }
  MUSTER_ASSIGN_OR_RETURN(const jobs::Selection selection, options.target.ToSelection());
  MUSTER_ASSIGN_OR_RETURN(const job::JobRecord job,
                          jobs::FindJob(context.jobs(), options.job, selection));
  MUSTER_RETURN_IF_ERROR(CheckNoOverrides(
      options.overrides,
      absl::StrCat(job.id, " is not a job file but a job; name its file instead")));
  return jobs::ClusterOf(context.jobs(), job);
}

// Returns the folder of the job's certificates, created if absent, or "" if none is requested.
absl::StatusOr<std::string> CertificatesOf(Context& context, const EnvOptions& options,
                                           const jobs::JobCluster& job) {
  if (options.certificates.empty()) return "";
  MUSTER_RETURN_IF_ERROR(context.CheckWorkingDir());
  const std::string folder = base::AbsolutePath(options.certificates, context.working_dir());
  MUSTER_RETURN_IF_ERROR(job::EnsureJobTls(job.submission.spec.name, folder));
  context.err().PrintLine(absl::StrCat(
      "copy ca.crt, tls.crt and tls.key of ", base::Printable(folder),
      " to a folder on every host, readable only by the user that runs the tasks, and set "
      "MUSTER_TLS_DIR to that folder; anyone who has the key can join the job"));
  return folder;
}

void PrintLaunch(Terminal& out, const job::RoleSpec& role, const job::TaskLaunch& launch,
                 bool json) {
  if (json) {
    PrintJson(out, nlohmann::json(launch.env));
    return;
  }
  for (const auto& [name, value] : launch.env) {
    out.PrintData(absl::StrCat("export ", name, "=", base::ShellQuote(value), "\n"));
  }
  // Comments out every line of the command, so that the output can be sourced.
  const std::string command =
      absl::StrReplaceAll(job::DescribeCommand(role, launch), {{"\n", "\n# "}});
  out.PrintData(absl::StrCat("# then: ", command, "\n"));
}

// Prints the value alone, for `export NAME=$(muster env …)`.
absl::Status PrintVariable(Terminal& out, const job::TaskLaunch& launch, const std::string& name) {
  const auto found = launch.env.find(name);
  if (found == launch.env.end()) {
    std::vector<std::string> names;
    for (const auto& [known, value] : launch.env) names.push_back(known);
    return absl::InvalidArgumentError(absl::StrCat("--print ", name, ": the task has no such ",
                                                   "variable", base::DidYouMean(name, names)));
  }
  out.PrintData(absl::StrCat(found->second, "\n"));
  return absl::OkStatus();
}

absl::StatusOr<int> Env(Context& context, const EnvOptions& options) {
  Terminal& out = context.out();
  MUSTER_ASSIGN_OR_RETURN(const jobs::JobCluster job, FindCluster(context, options));
  MUSTER_ASSIGN_OR_RETURN(const std::string certificates, CertificatesOf(context, options, job));
  if (options.cluster) {
    const auto config =
        nlohmann::ordered_json::parse(cluster::WriteTfConfig({.cluster = job.cluster}));
    PrintJson(out, config["cluster"]);
    return kSuccess;
  }
  if (options.role.empty()) {
    if (!certificates.empty()) return kSuccess;
    return absl::InvalidArgumentError(
        "missing task; usage: muster env JOB ROLE INDEX, or --cluster for all");
  }
  MUSTER_ASSIGN_OR_RETURN(cluster::TaskId task, cluster::TaskId::Parse(options.role));
  if (options.role.find(':') == std::string::npos) task.index = options.index;
  MUSTER_ASSIGN_OR_RETURN(const job::TaskLaunch launch,
                          jobs::LaunchByHand(context.jobs(), job, task, certificates));
  if (!options.print.empty()) {
    MUSTER_RETURN_IF_ERROR(PrintVariable(out, launch, options.print));
    return kSuccess;
  }
  PrintLaunch(out, *job.submission.spec.FindRole(task.role), launch, options.format == "json");
  return kSuccess;
}

}  // namespace

void AddEnvCommand(Command& program, Context& context) {
  Command& command =
      program.AddCommand("env", "Print TF_CONFIG and the other variables of one task");
  auto options = std::make_shared<EnvOptions>();
  command.Argument("JOB", &options->job, "A job file, or a job", Presence::kRequired);
  command.Argument("ROLE", &options->role, "The role of the task, or the task itself: worker:1");
  command.Argument("INDEX", &options->index, "The index of the task");
  AddOverrideOptions(command, &options->overrides);
  command.Flag("--cluster", &options->cluster,
               "Print the addresses of all tasks (the ClusterSpec)");
  command.Option("--certificates", &options->certificates,
                 "A folder for the certificates with which tasks on several machines authenticate "
                 "each other; created if it does not exist");
  command.Option("--format", &options->format, "Output format: shell or json", {"shell", "json"});
  command.Option("--print", &options->print,
                 "Print the value of one variable, without its name: --print TF_CONFIG");
  for (const char* other : {"--cluster", "--format"}) command.Exclude("--print", other);
  options->target.AddTo(command, context, platform::OptionUse::kEnv);
  command.OnCall([&context, options] { return Env(context, *options); });
}

}  // namespace muster::cli
