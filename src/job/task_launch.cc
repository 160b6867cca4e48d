#include "job/task_launch.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "base/files/files.h"
#include "base/text/terminal_text.h"
#include "cluster/address.h"
#include "cluster/ranks.h"
#include "cluster/tf_config.h"
#include "job/tf_server.h"

namespace muster::job {
namespace {

constexpr char kTaskFlags[] = "task_flags";

// From a placeholder to its value. Only {task_flags} has more than one word.
using Values = std::map<std::string, std::vector<std::string>>;
using Environment = std::map<std::string, std::string>;

// The input of all functions below.
struct Launch {
  const JobSpec& spec;
  const cluster::ClusterSpec& cluster;
  const cluster::TaskId& task;
  const LaunchContext& context;
  const RoleSpec& role;
  std::string address;  // host:port
  std::string host;
  std::string port;
};

// Tracks the quotes of a shell line, in order to quote a value at the current position. A
// placeholder expands to the same value inside and outside of quotes.
class ShellQuoting {
 public:
  void Advance(char c) {
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\' && quote_ != '\'') {
      escaped_ = true;
    } else if (c == quote_) {
      quote_ = 0;
    } else if (quote_ == 0 && (c == '\'' || c == '"')) {
      quote_ = c;
    }
  }

  // Returns the words as the shell reads them here. An escape before them applies to their first
  // byte.
  std::string Write(const std::vector<std::string>& words) {
    escaped_ = false;
    if (quote_ == 0) return base::ShellJoin(words);
    const std::string text = absl::StrJoin(words, " ");
    if (quote_ == '\'') return absl::StrReplaceAll(text, {{"'", "'\\''"}});
    return absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}, {"$", "\\$"}, {"`", "\\`"}});
  }

 private:
  char quote_ = 0;  // the open quote; 0 = none
  bool escaped_ = false;
};

// Returns the placeholder at the start of `text`, or null. Other braces are part of the user's
// text.
const Values::value_type* PlaceholderAt(absl::string_view text, const Values& values) {
  if (text.empty() || text.front() != '{') return nullptr;
  constexpr size_t kMaxPlaceholderLength =
      32;  // bounds the search: a text may have many open braces
  const size_t end = text.substr(0, kMaxPlaceholderLength).find('}');
  if (end == absl::string_view::npos) return nullptr;
  const auto found = values.find(std::string(text.substr(1, end - 1)));
  return found == values.end() ? nullptr : &*found;
}

enum class Expansion { kWord, kShellLine };

std::string Expand(absl::string_view text, const Values& values, Expansion target) {
  std::string result;
  ShellQuoting place;
  while (!text.empty()) {
    const bool is_variable =
        !result.empty() && result.back() == '$';  // ${name} is a shell variable
    const Values::value_type* placeholder = is_variable ? nullptr : PlaceholderAt(text, values);
    if (placeholder != nullptr) {
      result += target == Expansion::kShellLine ? place.Write(placeholder->second)
                                                : absl::StrJoin(placeholder->second, " ");
      text.remove_prefix(placeholder->first.size() + 2);
    } else {
      place.Advance(text.front());
      result.push_back(text.front());
      text.remove_prefix(1);
    }
  }
  return result;
}

Values PlaceholderValues(const Launch& launch) {
  const cluster::ClusterSpec& cluster = launch.cluster;
  const std::vector<cluster::TaskId> ranked = cluster::RankedTasks(cluster);
  const auto self = std::find(ranked.begin(), ranked.end(), launch.task);
  const std::string rank = self == ranked.end() ? "" : absl::StrCat(self - ranked.begin());
  const std::string chief_hosts = cluster.Hosts("chief");
  return {
      {"role", {launch.task.role}},
      {"index", {absl::StrCat(launch.task.index)}},
      {"port", {launch.port}},
      {"host", {launch.host}},
      {"address", {launch.address}},
      {"ps_hosts", {cluster.Hosts("ps")}},
      {"worker_hosts", {cluster.Hosts("worker")}},
      {"chief_hosts", {chief_hosts.empty() ? cluster.Hosts("master") : chief_hosts}},
      {"model_dir", {launch.spec.model_dir}},
      {"name", {launch.spec.name}},
      {"job_id", {launch.context.job_id}},
      {"rank", {rank}},
      {"world_size", {absl::StrCat(ranked.size())}},
      {"replicas", {absl::StrCat(launch.role.replicas)}},
      {"attempt", {absl::StrCat(launch.context.attempt)}},
      {kTaskFlags, cluster::WriteTaskFlags(cluster, launch.task)},
  };
}

bool IsShellLine(const std::vector<std::string>& command) {
  return command.size() == 3 && command[0] == "/bin/sh" && command[1] == "-c";
}

// Returns the argv of a role without a command.
std::vector<std::string> DefaultArgv(const Launch& launch) {
  const LaunchContext& context = launch.context;
  if (HasEntryPoint(launch.role)) return {};
  switch (launch.role.server) {
    case Server::kNone:
      return {context.trainer};
    case Server::kTrainer:
      return {context.trainer, "serve"};
    case Server::kTensorFlow:
      if (!context.tf_server.empty()) return {context.python, context.tf_server};
      return {context.python, "-c", std::string(TfServerProgram())};
  }
  return {};
}

std::vector<std::string> BuildArgv(const Launch& launch, const Values& values) {
  const std::vector<std::string>& command = launch.role.command;
  if (command.empty()) return DefaultArgv(launch);
  if (IsShellLine(command)) {
    return {command[0], command[1], Expand(command[2], values, Expansion::kShellLine)};
  }
  std::vector<std::string> argv;
  for (const std::string& word : command) {
    if (word == absl::StrCat("{", kTaskFlags, "}")) {
      const std::vector<std::string>& flags = values.at(kTaskFlags);
      argv.insert(argv.end(), flags.begin(), flags.end());
    } else {
      argv.push_back(Expand(word, values, Expansion::kWord));
    }
  }
  return argv;
}

// Returns nullopt if a task of this format gets no TF_CONFIG.
std::optional<std::string> BuildTfConfig(const Launch& launch) {
  const bool is_tfjob =
      launch.spec.format == JobFormat::kTfJobV1 || launch.spec.format == JobFormat::kTfJobV1Alpha1;
  const bool distributed = launch.cluster.size() > 1;
  if (is_tfjob && !distributed) return std::nullopt;

  cluster::TfConfig config;
  config.cluster = is_tfjob ? launch.cluster : launch.cluster.Without("evaluator");
  config.sparse = launch.spec.dynamic_workers;
  if (config.sparse) config.cluster = config.cluster.SparseViewOf(launch.task);
  config.task = launch.task;
  config.model_dir = launch.spec.model_dir;
  config.environment = distributed ? "cloud" : "local";
  return cluster::WriteTfConfig(config);
}

// Returns the variables that common training frameworks read. Variables of the user override them.
Environment ConventionalVariables(const Launch& launch) {
  const LaunchContext& context = launch.context;
  Environment env = cluster::CollectiveVariables(launch.cluster, launch.task);
  if (std::optional<std::string> tf_config = BuildTfConfig(launch)) {
    env["TF_CONFIG"] = *std::move(tf_config);
  }
  env["TORCHELASTIC_RESTART_COUNT"] = absl::StrCat(context.restart_count);
  env["TORCHELASTIC_MAX_RESTARTS"] = absl::StrCat(launch.spec.policies.max_restarts);
  env["TORCHELASTIC_RUN_ID"] = context.job_id;
  env["TORCHELASTIC_ERROR_FILE"] = base::JoinPath(context.run_dir, "error.json");
  env["PYTHONUNBUFFERED"] = "1";
  if (!context.user_set_omp) {
    env["OMP_NUM_THREADS"] =
        absl::StrCat(std::max(1, context.cpus / std::max(1, context.tasks_on_host)));
  }
  return env;
}

int Evaluators(const JobSpec& spec) {
  const RoleSpec* role = spec.FindRole("evaluator");
  return role == nullptr ? 0 : role->replicas;
}

Environment MusterVariables(const Launch& launch) {
  const LaunchContext& context = launch.context;
  Environment env = {
      {"MUSTER_JOB_ID", context.job_id},
      {"MUSTER_JOB_NAME", launch.spec.name},
      {"MUSTER_TASK", launch.task.ToString()},
      {"MUSTER_ROLE", launch.task.role},
      {"MUSTER_INDEX", absl::StrCat(launch.task.index)},
      {"MUSTER_ATTEMPT", absl::StrCat(context.attempt)},
      {"MUSTER_PORT", launch.port},
      {"MUSTER_ADDRESS", launch.address},
      {"MUSTER_PROGRESS_FILE", base::JoinPath(context.run_dir, "progress")},
      {"MUSTER_METRICS_FILE", context.metrics_file},
      {"MUSTER_EVALUATORS", absl::StrCat(Evaluators(launch.spec))},
  };
  // Rounded up to whole seconds, because 0 would disable the wait.
  env["MUSTER_START_TIMEOUT"] = absl::StrCat(std::max<int64_t>(
      1, absl::ToInt64Seconds(absl::Ceil(launch.spec.policies.start_timeout, absl::Seconds(1)))));
  if (!context.socket_dir.empty()) env["MUSTER_SOCKET_DIR"] = context.socket_dir;
  if (!context.tls_dir.empty()) env["MUSTER_TLS_DIR"] = context.tls_dir;
  if (!launch.spec.model_dir.empty()) env["MUSTER_MODEL_DIR"] = launch.spec.model_dir;
  if (!launch.spec.train.is_null()) env["MUSTER_TRAIN_CONFIG"] = context.train_config;
  if (context.resumed) env["MUSTER_RESUME"] = "1";
  if (context.resume_step) env["MUSTER_RESUME_STEP"] = absl::StrCat(*context.resume_step);
  return env;
}

// Later assignments win: conventional variables, then the user's, then Muster's own.
Environment BuildEnvironment(const Launch& launch, const Values& values) {
  Environment env = ConventionalVariables(launch);
  for (const Environment* users : {&launch.spec.env, &launch.role.env}) {
    for (const auto& [name, value] : *users) env[name] = Expand(value, values, Expansion::kWord);
  }
  for (auto& [name, value] : MusterVariables(launch)) env[name] = value;
  return env;
}

}  // namespace

absl::StatusOr<TaskLaunch> BuildTaskLaunch(const JobSpec& spec, const cluster::ClusterSpec& cluster,
                                           const cluster::TaskId& task,
                                           const LaunchContext& context) {
  const RoleSpec* role = spec.FindRole(task.role);
  if (role == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(task.ToString(), ": the job has no role of that name"));
  }
  const absl::string_view address = cluster.AddressOf(task);
  if (address.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(task.ToString(), ": the cluster has no address for it"));
  }
  const std::optional<cluster::Address> parsed = cluster::ParseAddress(address);
  if (!parsed) {
    return absl::InvalidArgumentError(
        absl::StrCat(task.ToString(), ": its address must be host:port, got '", address, "'"));
  }
  const Launch launch{spec,         cluster,
                      task,         context,
                      *role,        std::string(address),
                      parsed->host, absl::StrCat(parsed->port)};
  const Values values = PlaceholderValues(launch);
  return TaskLaunch{BuildArgv(launch, values), BuildEnvironment(launch, values),
                    base::AbsolutePath(role->working_dir, context.working_dir)};
}

std::string DescribeCommand(const RoleSpec& role, const TaskLaunch& launch) {
  if (!launch.argv.empty()) return base::ShellJoin(launch.argv);
  return absl::StrCat("the entry point of ", role.image);
}

const std::vector<std::string>& CommandPlaceholders() {
  static const auto& kNames = *new std::vector<std::string>{
      "role",         "index",       "port",      "host",    "address", "ps_hosts",
      "worker_hosts", "chief_hosts", "model_dir", "name",    "job_id",  "rank",
      "world_size",   "replicas",    "attempt",   kTaskFlags};
  return kNames;
}

}  // namespace muster::job
