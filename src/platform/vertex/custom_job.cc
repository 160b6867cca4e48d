#include "platform/vertex/custom_job.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "storage/json.h"
#include "storage/url.h"

namespace muster::vertex {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLongestLabel = 63;
constexpr size_t kHashedLabel = 32;

// Rejects options of tier CUSTOM that are given with another tier.
absl::Status CheckOnlyTier(const VertexTarget& target) {
  absl::string_view given;
  if (!target.master_type.empty()) given = "--master-type";
  if (!target.worker_type.empty()) given = "--worker-type";
  if (!target.parameter_server_type.empty()) given = "--parameter-server-type";
  if (target.workers) given = "--worker-count";
  if (target.parameter_servers) given = "--parameter-server-count";
  if (given.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      given, " is for --scale-tier CUSTOM; the machines of ", target.tier, " are fixed"));
}

absl::Status CheckFits(const ScaleTier& tier, const Pools& pools) {
  const size_t workers = pools[1].size(), servers = pools[2].size(), evaluators = pools[3].size();
  const bool single = tier.workers == 0;
  if (workers <= static_cast<size_t>(tier.workers) &&
      servers <= static_cast<size_t>(tier.parameter_servers) && (!single || evaluators == 0)) {
    return absl::OkStatus();
  }
  const std::string has =
      single ? "one machine"
             : absl::StrCat("a master, at most ", Plural(tier.workers, "worker"), " and at most ",
                            Plural(tier.parameter_servers, "parameter server"));
  return absl::InvalidArgumentError(absl::StrCat(
      "scale tier ", tier.name, " has ", has, ", and the job needs, besides the one that leads, ",
      Plural(static_cast<int64_t>(workers), "worker"), ", ", servers, " ps and ",
      Plural(static_cast<int64_t>(evaluators), "evaluator"),
      "; take a larger tier, or --scale-tier CUSTOM with --master-type, --worker-type "
      "and ",
      "--parameter-server-type"));
}

// Rejects a machine option for a pool without tasks.
absl::Status CheckUsed(absl::string_view option, const std::string& type,
                       const std::vector<TaskId>& pool, absl::string_view what) {
  if (type.empty() || !pool.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(option, ": the job has no ", what));
}

absl::StatusOr<ScaleTier> CustomTier(const VertexTarget& target, const Pools& pools) {
  if (target.master_type.empty()) {
    return absl::InvalidArgumentError(
        "--scale-tier CUSTOM needs --master-type, the machine of the task that leads");
  }
  MUSTER_RETURN_IF_ERROR(CheckUsed("--worker-type", target.worker_type, pools[1],
                                   "workers besides the one that leads"));
  MUSTER_RETURN_IF_ERROR(
      CheckUsed("--parameter-server-type", target.parameter_server_type, pools[2], "ps"));
  ScaleTier tier{.name = kCustomTier, .master = target.master_type, .custom = true};
  tier.worker = target.worker_type.empty() ? kDefaultWorker : target.worker_type;
  tier.parameter_server =
      target.parameter_server_type.empty() ? kDefaultParameterServer : target.parameter_server_type;
  return tier;
}

Json MachineSpec(const Machine& machine) {
  Json spec = {{"machineType", machine.type}};
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

Json Scheduling(const Policies& policies) {
  Json scheduling = Json::object();
  if (policies.deadline) scheduling["timeout"] = Seconds(*policies.deadline);
  if (policies.restart_scope == RestartScope::kJob) {
    scheduling["restartJobOnWorkerRestart"] = true;
  }
  return scheduling;
}

Json PoolSpec(const std::vector<TaskId>& tasks, const Machine& machine, const std::string& image,
              const std::vector<std::string>& args) {
  return {{"machineSpec", MachineSpec(machine)},
          {"replicaCount", absl::StrCat(tasks.size())},  // an int64 is a string in JSON
          {"containerSpec",
           {{"imageUri", image}, {"command", {kProgram, kTaskCommand}}, {"args", args}}}};
}

// Returns true if Muster's image contains the program that the role runs.
bool IsOurs(const RoleSpec& role) {
  return role.command.empty() || role.command.front() == "muster-trainer";
}

std::string NoImage(const RoleSpec& role) {
  return absl::StrCat("role '", role.name,
                      "' has a command and no image; set 'image' for it or for the ",
                      "whole job, or give --image: one that has the command, and muster");
}

// Adds the fields of a role that Vertex AI ignores.
void AddRoleLimits(const JobSpec& spec, const RoleSpec& role, std::vector<Limit>& limits) {
  const auto add = [&](absl::string_view field, absl::string_view instead) {
    limits.push_back({.what = NotOfRole(role, field, instead)});
  };
  if (role.resources != Resources()) {
    add("resources",
        "the machine decides; choose it by --scale-tier or --worker-type and the like");
  }
  if (role.restart == RestartPolicy::kAlways || role.restart == RestartPolicy::kOnFailure) {
    add("restart",
        "a task that fails ends the job; `muster run … --resume` goes on from its "
        "checkpoint");
  }
  if (role.ready == Readiness::kListening) add("ready", "a task counts as up with its job");
  // Manifests always have a port, so only a native job file counts.
  const bool placed = role.port.has_value() || !role.addresses.empty();
  if (placed && spec.format == JobFormat::kNative) {
    add("port and addresses", "Vertex AI gives them");
  }
  if (!role.kubernetes.is_null()) add("kubernetes", kForKubernetesAlone);
  if (!role.pod.is_null()) {
    add("template", "of a pod only the container's image, command and variables are taken");
  }
}

// A `train` section without model_dir gets the default one, which is no choice of the user.
void AddModelDirLimit(const JobSpec& spec, std::vector<Limit>& limits) {
  const bool usual = absl::EndsWith(spec.model_dir, absl::StrCat("/runs/", spec.name));
  if (spec.model_dir.empty() || storage::IsRemote(spec.model_dir) || usual) return;
  limits.push_back({.what = absl::StrCat("model_dir: ", spec.model_dir,
                                         " is a path of this machine; checkpoints go to the run's "
                                         "folder in the bucket, or to a URL (gs://…)")});
}

void AddPolicyLimits(const JobSpec& spec, std::vector<Limit>& limits) {
  const Policies& policies = spec.policies;
  AddBackoffLimit(spec, "a task that fails ends the job", limits);
  if (policies.success == SuccessPolicy::kAllWorkers) {
    limits.push_back({.what = "policies: success: the job succeeds when the task that leads does"});
  }
  const Policies usual;
  const auto add = [&limits](absl::string_view what) {
    limits.push_back({.what = absl::StrCat("policies: ", what)});
  };
  if (policies.max_restarts != usual.max_restarts) {
    add("max_restarts: a task that fails ends the job; `muster run … --resume` goes on from its "
        "checkpoint");
  }
  if (policies.stop_grace != usual.stop_grace) {
    add("stop_grace: Vertex AI decides how long a task has to end");
  }
  if (policies.finish_grace != usual.finish_grace) {
    add("finish_grace: Vertex AI ends the other tasks when the one that leads has succeeded");
  }
  if (policies.stall) {
    limits.push_back({.what = "policies: stall: nobody watches the progress of its tasks"});
  }
  const auto pools = PoolsOf(spec);
  if (policies.chief && pools.ok() && *policies.chief != pools->front().front()) {
    limits.push_back({.what = absl::StrCat("policies: chief: ", pools->front().front().ToString(),
                                           " leads the job, not ", policies.chief->ToString())});
  }
}

}  // namespace

absl::StatusOr<std::array<Machine, kPools>> MachinesFor(const VertexTarget& target,
                                                        const Pools& pools) {
  MUSTER_ASSIGN_OR_RETURN(ScaleTier tier, FindTier(target.tier));
  if (tier.custom) {
    MUSTER_ASSIGN_OR_RETURN(tier, CustomTier(target, pools));
  } else {
    MUSTER_RETURN_IF_ERROR(CheckOnlyTier(target));
    MUSTER_RETURN_IF_ERROR(CheckFits(tier, pools));
  }
  const std::array names = {tier.master, tier.worker, tier.parameter_server, tier.master};
  std::array<Machine, kPools> machines;
  for (size_t i = 0; i < kPools; ++i) {
    if (pools.at(i).empty()) continue;
    MUSTER_ASSIGN_OR_RETURN(machines.at(i), ParseMachine(names.at(i)));
  }
  return machines;
}

bool LeavesGpusIdle(const JobSpec& spec, const Pools& pools,
                    const std::array<Machine, kPools>& machines) {
  for (size_t i = 0; i < kPools; ++i) {
    if (pools.at(i).empty() || machines.at(i).count == 0) continue;
    if (IsOurs(*spec.FindRole(pools.at(i).front().role))) return true;
  }
  return false;
}

absl::Status CheckJobId(absl::string_view id) {
  const bool good =
      !id.empty() && id.size() <= kLongestLabel &&
      absl::ascii_islower(static_cast<unsigned char>(id.front())) &&
      std::all_of(id.begin(), id.end(), [](char c) {
        const auto u = static_cast<unsigned char>(c);
        return absl::ascii_islower(u) || absl::ascii_isdigit(u) || c == '-' || c == '_';
      });
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "job id '", id,
      "': on Vertex AI it is made of a-z, 0-9, - and _, begins with a letter and has at ", "most ",
      kLongestLabel, " of them"));
}

absl::StatusOr<std::string> ImageOf(const RoleSpec& role, const VertexTarget& target,
                                    absl::string_view version) {
  if (!role.image.empty()) return role.image;
  if (!target.image.empty()) return target.image;
  if (!IsOurs(role)) return absl::InvalidArgumentError(NoImage(role));
  // The registry path of a domain-scoped project, "example.com:project", is "example.com/project".
  return absl::StrCat(target.region, "-docker.pkg.dev/",
                      absl::StrReplaceAll(target.project, {{":", "/"}}),
                      "/muster/muster-vertex:", version);
}

std::string FolderLabel(absl::string_view model_dir) {
  return Sha256Hex(absl::StripSuffix(model_dir, "/")).substr(0, kHashedLabel);
}

std::string LabelOf(const nlohmann::json& job, const char* label) {
  const auto labels = job.find("labels");
  return labels == job.end() ? "" : storage::TextMember(*labels, label);
}

std::string LabelFilter(absl::string_view label, absl::string_view value) {
  return absl::StrCat("labels.", label, "=\"", value, "\"");
}

absl::StatusOr<nlohmann::ordered_json> CustomJobOf(const Submission& submission,
                                                   absl::string_view version) {
  const VertexTarget target = TargetOf<VertexTarget>(submission);
  MUSTER_RETURN_IF_ERROR(CheckJobId(submission.id));
  MUSTER_ASSIGN_OR_RETURN(const Pools pools, PoolsOf(submission.spec));
  MUSTER_ASSIGN_OR_RETURN(const auto machines, MachinesFor(target, pools));
  Json specs = Json::array();
  for (size_t i = 0; i < pools.size(); ++i) {
    if (pools.at(i).empty()) {
      specs.push_back(Json::object());  // pools are identified by position
      continue;
    }
    const RoleSpec& role = *submission.spec.FindRole(pools.at(i).front().role);
    MUSTER_ASSIGN_OR_RETURN(const std::string image, ImageOf(role, target, version));
    specs.push_back(
        PoolSpec(pools.at(i), machines.at(i), image,
                 {target.FolderOf(submission.id), target.run.nonce(), target.run.run_sha256}));
  }
  while (specs.size() > 1 && specs.back().empty()) specs.erase(specs.size() - 1);
  Json job_spec = {{"workerPoolSpecs", std::move(specs)}};
  if (Json scheduling = Scheduling(submission.spec.policies); !scheduling.empty()) {
    job_spec["scheduling"] = std::move(scheduling);
  }
  // Vertex AI accepts Cloud Storage URLs only.
  job_spec["baseOutputDirectory"] = {
      {"outputUriPrefix", absl::StartsWith(target.run.folder, "gs://")
                              ? target.run.folder
                              : target.FolderOf(submission.id)}};
  Json labels = {{kJobLabel, submission.id}};
  if (!target.run.tries.empty()) labels[kRunLabel] = target.run.nonce();
  if (pools[0].front().role != "evaluator") labels[kFolderLabel] = FolderLabel(target.run.folder);
  return Json{{"displayName", submission.id},
              {"jobSpec", std::move(job_spec)},
              {"labels", std::move(labels)}};
}

std::vector<Limit> LimitsOf(const JobSpec& spec) {
  std::vector<Limit> limits;
  if (const auto pools = PoolsOf(spec); !pools.ok()) {
    limits.push_back({.what = std::string(pools.status().message()), .fatal = true});
  }
  for (const RoleSpec& role : spec.roles) AddRoleLimits(spec, role, limits);
  AddPolicyLimits(spec, limits);
  AddHostLimits(spec, limits);
  AddKubernetesLimits(spec, limits);
  AddModelDirLimit(spec, limits);
  return limits;
}

}  // namespace muster::vertex
