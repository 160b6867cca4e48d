#include "job/job_spec.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/text/units.h"
#include "job/enum_names.h"
#include "job/images.h"

namespace muster::job {
namespace {

using Json = nlohmann::json;

// Thrown for an invalid value. Json::at and Json::get throw their own exceptions for a document of
// another shape. JobSpecFromJson() catches both.
struct BadSpec {
  std::string message;
};

Json DurationToJson(absl::Duration duration) { return FormatDuration(duration); }

absl::Duration DurationFromJson(const Json& json) {
  const absl::StatusOr<absl::Duration> duration = base::ParseDuration(json.get<std::string>());
  if (!duration.ok()) throw BadSpec{std::string(duration.status().message())};
  return *duration;
}

template <typename Enum>
Enum EnumFromJson(const Json& json) {
  const auto name = json.get<std::string>();
  const std::optional<Enum> value = FromName<Enum>(name);
  if (!value) throw BadSpec{absl::StrCat("unknown value '", name, "'")};
  return *value;
}

template <typename T>
Json OptionalToJson(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

template <typename T>
std::optional<T> OptionalFromJson(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional<T>(json.get<T>());
}

Json RoleToJson(const RoleSpec& role) {
  return {{"name", role.name},
          {"replicas", role.replicas},
          {"command", role.command},
          {"server", NameOf(role.server)},
          {"env", role.env},
          {"working_dir", role.working_dir},
          {"restart", NameOf(role.restart)},
          {"ready", NameOf(role.ready)},
          {"port", OptionalToJson(role.port)},
          {"addresses", role.addresses},
          {"cpus", OptionalToJson(role.resources.cpus)},
          {"memory_bytes", OptionalToJson(role.resources.memory_bytes)},
          {"gpus", OptionalToJson(role.resources.gpus)},
          {"image", role.image},
          {"pod", role.pod},
          {"kubernetes", role.kubernetes}};
}

// Members that earlier versions did not store are optional, here and below: such a job has their
// defaults.
RoleSpec RoleFromJson(const Json& json) {
  RoleSpec role;
  role.name = json.at("name").get<std::string>();
  role.replicas = json.at("replicas").get<int>();
  role.command = json.at("command").get<std::vector<std::string>>();
  if (json.contains("server")) role.server = EnumFromJson<Server>(json["server"]);
  role.env = json.at("env").get<std::map<std::string, std::string>>();
  role.working_dir = json.at("working_dir").get<std::string>();
  role.restart = EnumFromJson<RestartPolicy>(json.at("restart"));
  role.ready = EnumFromJson<Readiness>(json.at("ready"));
  role.port = OptionalFromJson<int>(json.at("port"));
  role.addresses = json.at("addresses").get<std::vector<std::string>>();
  role.resources.cpus = OptionalFromJson<double>(json.at("cpus"));
  role.resources.memory_bytes = OptionalFromJson<int64_t>(json.at("memory_bytes"));
  role.resources.gpus = OptionalFromJson<int>(json.at("gpus"));
  role.image = json.at("image").get<std::string>();
  role.pod = json.at("pod");
  role.kubernetes = json.value("kubernetes", Json());
  return role;
}

Json StallToJson(const std::optional<StallPolicy>& stall) {
  if (!stall) return nullptr;
  return {{"timeout", DurationToJson(stall->timeout)}, {"action", NameOf(stall->action)}};
}

std::optional<StallPolicy> StallFromJson(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return StallPolicy{.timeout = DurationFromJson(json.at("timeout")),
                     .action = EnumFromJson<StallAction>(json.at("action"))};
}

std::optional<cluster::TaskId> ChiefFromJson(const Json& json) {
  if (json.is_null()) return std::nullopt;
  const absl::StatusOr<cluster::TaskId> chief = cluster::TaskId::Parse(json.get<std::string>());
  if (!chief.ok()) throw BadSpec{std::string(chief.status().message())};
  return *chief;
}

Json PoliciesToJson(const Policies& policies) {
  return {{"max_restarts", policies.max_restarts},
          {"restart_scope", NameOf(policies.restart_scope)},
          {"backoff", DurationToJson(policies.backoff)},
          {"max_backoff", DurationToJson(policies.max_backoff)},
          {"start_timeout", DurationToJson(policies.start_timeout)},
          {"deadline", policies.deadline ? DurationToJson(*policies.deadline) : Json()},
          {"stop_grace", DurationToJson(policies.stop_grace)},
          {"finish_grace", DurationToJson(policies.finish_grace)},
          {"host_timeout", DurationToJson(policies.host_timeout)},
          {"success", NameOf(policies.success)},
          {"chief", policies.chief ? Json(policies.chief->ToString()) : Json()},
          {"stall", StallToJson(policies.stall)},
          {"log_rotate_bytes", policies.log_rotate_bytes},
          {"log_keep", policies.log_keep}};
}

Policies PoliciesFromJson(const Json& json) {
  Policies policies;
  policies.max_restarts = json.at("max_restarts").get<int>();
  policies.restart_scope = EnumFromJson<RestartScope>(json.at("restart_scope"));
  policies.backoff = DurationFromJson(json.at("backoff"));
  policies.max_backoff = DurationFromJson(json.at("max_backoff"));
  policies.start_timeout = DurationFromJson(json.at("start_timeout"));
  if (const Json& deadline = json.at("deadline"); !deadline.is_null()) {
    policies.deadline = DurationFromJson(deadline);
  }
  policies.stop_grace = DurationFromJson(json.at("stop_grace"));
  policies.finish_grace = DurationFromJson(json.at("finish_grace"));
  if (json.contains("host_timeout")) {
    policies.host_timeout = DurationFromJson(json["host_timeout"]);
  }
  policies.success = EnumFromJson<SuccessPolicy>(json.at("success"));
  policies.chief = ChiefFromJson(json.value("chief", Json()));
  policies.stall = StallFromJson(json.at("stall"));
  policies.log_rotate_bytes = json.at("log_rotate_bytes").get<int64_t>();
  policies.log_keep = json.at("log_keep").get<int>();
  return policies;
}

Json HostToJson(const HostSpec& host) {
  return {{"name", host.name},  {"address", host.address}, {"user", host.user},
          {"port", host.port},  {"key", host.key},         {"slots", OptionalToJson(host.slots)},
          {"roles", host.roles}};
}

HostSpec HostFromJson(const Json& json) {
  return {.name = json.at("name").get<std::string>(),
          .address = json.at("address").get<std::string>(),
          .user = json.at("user").get<std::string>(),
          .port = json.at("port").get<int>(),
          .key = json.at("key").get<std::string>(),
          .slots = OptionalFromJson<int>(json.at("slots")),
          .roles = json.at("roles").get<std::vector<std::string>>()};
}

JobSpec SpecFromJson(const Json& json) {
  JobSpec spec;
  spec.format = EnumFromJson<JobFormat>(json.at("format"));
  spec.name = json.at("name").get<std::string>();
  spec.model_dir = json.at("model_dir").get<std::string>();
  spec.env = json.at("env").get<std::map<std::string, std::string>>();
  for (const Json& role : json.at("roles")) spec.roles.push_back(RoleFromJson(role));
  spec.train = json.at("train");
  spec.notebook = json.at("notebook");
  spec.kubernetes_namespace = json.at("kubernetes_namespace").get<std::string>();
  spec.kubernetes = json.at("kubernetes");
  for (const Json& host : json.value("hosts", Json::array())) {
    spec.hosts.push_back(HostFromJson(host));
  }
  spec.dynamic_workers = json.at("dynamic_workers").get<bool>();
  spec.policies = PoliciesFromJson(json.at("policies"));
  return spec;
}

}  // namespace

const RoleSpec* JobSpec::FindRole(absl::string_view role) const {
  for (const RoleSpec& candidate : roles) {
    if (candidate.name == role) return &candidate;
  }
  return nullptr;
}

std::vector<cluster::TaskId> JobSpec::Tasks() const {
  std::vector<cluster::TaskId> tasks;
  for (const RoleSpec& role : roles) {
    for (int index = 0; index < role.replicas; ++index) tasks.push_back({role.name, index});
  }
  return tasks;
}

bool IsChiefRole(absl::string_view role) { return role == "chief" || role == "master"; }

bool IsServiceRole(absl::string_view role) { return role == "ps" || role == "evaluator"; }

bool ServesOthers(const JobSpec& spec, absl::string_view role) {
  return IsServiceRole(role) &&
         std::any_of(spec.roles.begin(), spec.roles.end(), [](const RoleSpec& other) {
           return other.replicas > 0 && !IsServiceRole(other.name);
         });
}

bool HasEntryPoint(const RoleSpec& role) {
  return role.command.empty() && role.server == Server::kNone && !role.pod.is_null() &&
         !IsTrainerImage(role.image);
}

bool NeedsTrainer(const JobSpec& spec) {
  return std::any_of(spec.roles.begin(), spec.roles.end(), [](const RoleSpec& role) {
    return role.command.empty() && role.server != Server::kTensorFlow && !HasEntryPoint(role);
  });
}

bool NeedsTfServer(const JobSpec& spec) {
  return std::any_of(spec.roles.begin(), spec.roles.end(),
                     [](const RoleSpec& role) { return role.server == Server::kTensorFlow; });
}

std::optional<cluster::TaskId> ChiefTask(const JobSpec& spec) {
  if (spec.policies.chief) return spec.policies.chief;
  for (const char* name : {"chief", "master", "worker"}) {
    const RoleSpec* role = spec.FindRole(name);
    if (role != nullptr && role->replicas > 0) return cluster::TaskId{name, 0};
  }
  return std::nullopt;
}

nlohmann::json JobSpecToJson(const JobSpec& spec) {
  Json roles = Json::array();
  for (const RoleSpec& role : spec.roles) roles.push_back(RoleToJson(role));
  Json hosts = Json::array();
  for (const HostSpec& host : spec.hosts) hosts.push_back(HostToJson(host));
  return {{"format", NameOf(spec.format)},
          {"name", spec.name},
          {"model_dir", spec.model_dir},
          {"env", spec.env},
          {"roles", roles},
          {"train", spec.train},
          {"notebook", spec.notebook},
          {"kubernetes_namespace", spec.kubernetes_namespace},
          {"kubernetes", spec.kubernetes},
          {"hosts", hosts},
          {"dynamic_workers", spec.dynamic_workers},
          {"policies", PoliciesToJson(spec.policies)}};
}

absl::StatusOr<JobSpec> JobSpecFromJson(const nlohmann::json& json) {
  try {
    return SpecFromJson(json);
  } catch (const nlohmann::json::exception& e) {
    return absl::InvalidArgumentError(absl::StrCat("not a stored job: ", e.what()));
  } catch (const BadSpec& bad) {
    return absl::InvalidArgumentError(absl::StrCat("not a stored job: ", bad.message));
  }
}

}  // namespace muster::job
