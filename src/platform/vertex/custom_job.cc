#include "platform/vertex/custom_job.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/bytes/digest.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "base/text/units.h"
#include "platform/vertex/agent.h"
#include "storage/url.h"

namespace muster::vertex {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr size_t kMaxLabelLength = 63;
constexpr size_t kHashedLabel = 32;

// Rejects options of tier CUSTOM that are given with another tier.
absl::Status CheckOnlyTier(const job::VertexTarget& target) {
  absl::string_view given;
  if (!target.master_type.empty()) given = "--master-type";
  if (!target.worker_type.empty()) given = "--worker-type";
  if (!target.parameter_server_type.empty()) given = "--parameter-server-type";
  if (target.workers) given = "--worker-count";
  if (target.parameter_servers) given = "--parameter-server-count";
  if (given.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      given, " requires --scale-tier CUSTOM; the machines of ", target.tier, " are fixed"));
}

absl::Status CheckFits(const ScaleTier& tier, const Pools& pools) {
  const size_t workers = pools[1].size(), servers = pools[2].size(), evaluators = pools[3].size();
  const bool single = tier.workers == 0;
  if (workers <= static_cast<size_t>(tier.workers) &&
      servers <= static_cast<size_t>(tier.parameter_servers) && (!single || evaluators == 0)) {
    return absl::OkStatus();
  }
  const std::string has =
      single
          ? "one machine"
          : absl::StrCat("a master, at most ", base::Plural(tier.workers, "worker"),
                         " and at most ", base::Plural(tier.parameter_servers, "parameter server"));
  return absl::InvalidArgumentError(absl::StrCat(
      "scale tier ", tier.name, " has ", has, ", but the job needs, besides the leading task, ",
      base::Plural(static_cast<int64_t>(workers), "worker"), ", ", servers, " ps and ",
      base::Plural(static_cast<int64_t>(evaluators), "evaluator"),
      "; use a larger tier, or --scale-tier CUSTOM with --master-type, --worker-type "
      "and ",
      "--parameter-server-type"));
}

// Rejects a machine option for a pool without tasks.
absl::Status CheckUsed(absl::string_view option, const std::string& type,
                       const std::vector<cluster::TaskId>& pool, absl::string_view what) {
  if (type.empty() || !pool.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(option, ": the job has no ", what));
}

absl::StatusOr<ScaleTier> CustomTier(const job::VertexTarget& target, const Pools& pools) {
  MUSTER_RETURN_IF_ERROR(
      CheckUsed("--worker-type", target.worker_type, pools[1], "workers besides the leading task"));
  MUSTER_RETURN_IF_ERROR(
      CheckUsed("--parameter-server-type", target.parameter_server_type, pools[2], "ps"));
  ScaleTier tier{.name = kCustomTier, .custom = true};
  tier.master = target.master_type.empty() ? kDefaultMaster : target.master_type;
  tier.worker = target.worker_type.empty() ? kDefaultWorker : target.worker_type;
  tier.parameter_server =
      target.parameter_server_type.empty() ? kDefaultParameterServer : target.parameter_server_type;
  return tier;
}

OrderedJson MachineSpec(const Machine& machine) {
  OrderedJson spec = {{"machineType", machine.type}};
  if (machine.count > 0) {
    spec["acceleratorType"] = machine.accelerator;
    spec["acceleratorCount"] = machine.count;
  }
  return spec;
}

// Formats a duration in whole seconds, rounded up.
std::string Seconds(absl::Duration duration) {
  return absl::StrCat(absl::ToInt64Seconds(absl::Ceil(duration, absl::Seconds(1))), "s");
}

OrderedJson Scheduling(const job::Policies& policies) {
  OrderedJson scheduling = OrderedJson::object();
  if (policies.deadline) scheduling["timeout"] = Seconds(*policies.deadline);
  if (policies.restart_scope == job::RestartScope::kJob) {
    scheduling["restartJobOnWorkerRestart"] = true;
  }
  return scheduling;
}

OrderedJson PoolSpec(const std::vector<cluster::TaskId>& tasks, const Machine& machine,
                     const std::string& image, const ContainerCommand& line) {
  return {{"machineSpec", MachineSpec(machine)},
          {"replicaCount", absl::StrCat(tasks.size())},  // an int64 is a string in JSON
          {"containerSpec", {{"imageUri", image}, {"command", line.command}, {"args", line.args}}}};
}

std::string MissingImage(const job::RoleSpec& role) {
  return absl::StrCat(
      "role '", role.name,
      "' runs a program of yours and has no image; set 'image' for it or for the whole job, or ",
      "pass --image; any image with the program and a shell will do, such as python:3");
}

ContainerCommand CommandOf(const job::RoleSpec& role, const job::Submission& submission) {
  const job::VertexTarget& target = job::TargetOf<job::VertexTarget>(submission);
  const std::vector<std::string> arguments = {target.FolderOf(submission.id), target.run.nonce(),
                                              target.run.run_sha256};
  if (RunsTrainer(role)) return {.command = {kProgram, kTaskCommand}, .args = arguments};
  return StartByAgent(target.bucket, target.run.agent_sha256, arguments);
}

// Adds the fields of a role that Vertex AI ignores.
void AddRoleLimits(const job::JobSpec& spec, const job::RoleSpec& role,
                   std::vector<platform::Limit>& limits) {
  const auto add = [&](absl::string_view field, absl::string_view instead) {
    limits.push_back({.what = platform::RoleLimit(role, field, instead)});
  };
  if (role.resources != job::Resources()) {
    add("resources", "the machine type determines them; see --scale-tier and --worker-type");
  }
  if (role.restart == job::RestartPolicy::kAlways ||
      role.restart == job::RestartPolicy::kOnFailure) {
    add("restart",
        "a failed task ends the job; `muster run … --resume` continues from its "
        "checkpoint");
  }
  if (role.ready == job::Readiness::kListening)
    add("ready", "a task counts as up when its job runs");
  // Manifests always have a port, so only a native job file counts.
  const bool placed = role.port.has_value() || !role.addresses.empty();
  if (placed && spec.format == job::JobFormat::kNative) {
    add("port and addresses", "Vertex AI assigns them");
  }
  if (!role.kubernetes.is_null()) add("kubernetes", platform::kForKubernetesAlone);
  if (!role.pod.is_null()) {
    add("template", "only the image, command and variables of the container are used");
  }
}

// A `train` section without model_dir has the default one, which the user did not choose.
void AddModelDirLimit(const job::JobSpec& spec, std::vector<platform::Limit>& limits) {
  const bool usual = absl::EndsWith(spec.model_dir, absl::StrCat("/runs/", spec.name));
  if (spec.model_dir.empty() || storage::IsRemote(spec.model_dir) || usual) return;
  limits.push_back({.what = absl::StrCat("model_dir: ", spec.model_dir,
                                         " is a path of this machine; checkpoints go to the run's "
                                         "folder in the bucket, or to a URL (gs://…)")});
}

void AddPolicyLimits(const job::JobSpec& spec, std::vector<platform::Limit>& limits) {
  const job::Policies& policies = spec.policies;
  platform::AddBackoffLimit(spec, "a failed task ends the job", limits);
  if (policies.success == job::SuccessPolicy::kAllWorkers) {
    limits.push_back({.what = "policies: success: the job succeeds when the leading task does"});
  }
  const job::Policies usual;
  const auto add = [&limits](absl::string_view what) {
    limits.push_back({.what = absl::StrCat("policies: ", what)});
  };
  if (policies.max_restarts != usual.max_restarts) {
    add("max_restarts: a failed task ends the job; `muster run … --resume` continues from its "
        "checkpoint");
  }
  if (policies.stop_grace != usual.stop_grace) {
    add("stop_grace: Vertex AI determines the time that a task has to end");
  }
  if (policies.finish_grace != usual.finish_grace) {
    add("finish_grace: Vertex AI ends the other tasks when the leading task has succeeded");
  }
  if (policies.stall) {
    limits.push_back({.what = "policies: stall: stalled tasks are not detected"});
  }
  const auto pools = PoolsOf(spec);
  if (policies.chief && pools.ok() && *policies.chief != pools->front().front()) {
    limits.push_back({.what = absl::StrCat("policies: chief: ", pools->front().front().ToString(),
                                           " leads the job, not ", policies.chief->ToString())});
  }
}

}  // namespace

absl::StatusOr<std::array<Machine, kPools>> MachinesFor(const job::VertexTarget& target,
                                                        const Pools& pools) {
  MUSTER_ASSIGN_OR_RETURN(ScaleTier tier, FindTier(target.tier));
  if (tier.custom) {
    MUSTER_ASSIGN_OR_RETURN(tier, CustomTier(target, pools));
  } else {
    MUSTER_RETURN_IF_ERROR(CheckOnlyTier(target));
    MUSTER_RETURN_IF_ERROR(CheckFits(tier, pools));
  }
  // An evaluator gets the same type of machine as the leading task.
  const std::array names = {tier.master, tier.worker, tier.parameter_server, tier.master};
  std::array<Machine, kPools> machines;
  for (size_t i = 0; i < kPools; ++i) {
    if (pools.at(i).empty()) continue;
    MUSTER_ASSIGN_OR_RETURN(machines.at(i), ParseMachine(names.at(i)));
  }
  return machines;
}

bool LeavesGpusIdle(const job::JobSpec& spec, const Pools& pools,
                    const std::array<Machine, kPools>& machines) {
  for (size_t i = 0; i < kPools; ++i) {
    if (pools.at(i).empty() || machines.at(i).count == 0) continue;
    if (RunsTrainer(*spec.FindRole(pools.at(i).front().role))) return true;
  }
  return false;
}

absl::Status CheckJobId(absl::string_view id) {
  const bool good =
      !id.empty() && id.size() <= kMaxLabelLength &&
      absl::ascii_islower(static_cast<unsigned char>(id.front())) &&
      std::all_of(id.begin(), id.end(), [](char c) {
        const auto u = static_cast<unsigned char>(c);
        return absl::ascii_islower(u) || absl::ascii_isdigit(u) || c == '-' || c == '_';
      });
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("invalid job id '", id, "'; on Vertex AI it has at most ", kMaxLabelLength,
                   " characters of a-z, 0-9, - and _, and begins with a letter"));
}

platform::Image ImageIn(const std::string& repository, absl::string_view version) {
  return {repository, "muster-vertex", std::string(version), {"muster", "muster-trainer"}};
}

absl::StatusOr<std::string> ImageOf(const job::RoleSpec& role, const job::VertexTarget& target,
                                    absl::string_view version) {
  if (!role.image.empty()) return role.image;
  if (!target.image.empty()) return target.image;
  if (!RunsTrainer(role)) return absl::InvalidArgumentError(MissingImage(role));
  if (!target.image_repository.empty()) {
    return ImageIn(target.image_repository, version).Reference();
  }
  // The registry path of a domain-scoped project, "example.com:project", is "example.com/project".
  return absl::StrCat(target.region, "-docker.pkg.dev/",
                      absl::StrReplaceAll(target.project, {{":", "/"}}),
                      "/muster/muster-vertex:", version);
}

std::string FolderLabel(absl::string_view model_dir) {
  return base::Sha256Hex(absl::StripSuffix(model_dir, "/")).substr(0, kHashedLabel);
}

std::string LabelOf(const nlohmann::json& job, const char* label) {
  const auto labels = job.find("labels");
  return labels == job.end() ? "" : base::TextMember(*labels, label);
}

std::string LabelFilter(absl::string_view label, absl::string_view value) {
  return absl::StrCat("labels.", label, "=\"", value, "\"");
}

absl::StatusOr<nlohmann::ordered_json> CustomJobOf(const job::Submission& submission,
                                                   absl::string_view version) {
  const job::VertexTarget target = job::TargetOf<job::VertexTarget>(submission);
  MUSTER_RETURN_IF_ERROR(CheckJobId(submission.id));
  MUSTER_ASSIGN_OR_RETURN(const Pools pools, PoolsOf(submission.spec));
  MUSTER_ASSIGN_OR_RETURN(const auto machines, MachinesFor(target, pools));
  OrderedJson specs = OrderedJson::array();
  for (size_t i = 0; i < pools.size(); ++i) {
    if (pools.at(i).empty()) {
      specs.push_back(OrderedJson::object());  // pools are identified by position
      continue;
    }
    const job::RoleSpec& role = *submission.spec.FindRole(pools.at(i).front().role);
    MUSTER_ASSIGN_OR_RETURN(const std::string image, ImageOf(role, target, version));
    specs.push_back(PoolSpec(pools.at(i), machines.at(i), image, CommandOf(role, submission)));
  }
  while (specs.size() > 1 && specs.back().empty()) specs.erase(specs.size() - 1);
  OrderedJson job_spec = {{"workerPoolSpecs", std::move(specs)}};
  if (OrderedJson scheduling = Scheduling(submission.spec.policies); !scheduling.empty()) {
    job_spec["scheduling"] = std::move(scheduling);
  }
  // Vertex AI accepts Cloud Storage URLs only.
  job_spec["baseOutputDirectory"] = {
      {"outputUriPrefix", absl::StartsWith(target.run.folder, "gs://")
                              ? target.run.folder
                              : target.FolderOf(submission.id)}};
  OrderedJson labels = {{kJobLabel, submission.id}};
  if (!target.run.tries.empty()) labels[kRunLabel] = target.run.nonce();
  // A job that consists of an evaluator only reads the folder; see kFolderLabel.
  if (pools[0].front().role != "evaluator") labels[kFolderLabel] = FolderLabel(target.run.folder);
  return OrderedJson{{"displayName", submission.id},
                     {"jobSpec", std::move(job_spec)},
                     {"labels", std::move(labels)}};
}

std::vector<platform::Limit> LimitsOf(const job::JobSpec& spec) {
  std::vector<platform::Limit> limits;
  if (const auto pools = PoolsOf(spec); !pools.ok()) {
    limits.push_back({.what = std::string(pools.status().message()), .fatal = true});
  }
  for (const job::RoleSpec& role : spec.roles) AddRoleLimits(spec, role, limits);
  AddPolicyLimits(spec, limits);
  platform::AddHostLimits(spec, limits);
  platform::AddKubernetesLimits(spec, limits);
  AddModelDirLimit(spec, limits);
  return limits;
}

}  // namespace muster::vertex
