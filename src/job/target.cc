#include "job/target.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr char kLocal[] = "local";
constexpr char kSsh[] = "ssh";
constexpr char kKubernetes[] = "kubernetes";
constexpr char kVertex[] = "vertex";
constexpr char kPlatform[] = "platform";

std::string Text(const Json& json, const char* key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<int64_t> Number(const Json& json, const char* key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  if (found == json.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<int64_t>();
}

std::optional<int> Count(const Json& json, const char* key) {
  const auto number = Number(json, key);
  if (!number) return std::nullopt;
  return static_cast<int>(*number);
}

bool IsSet(const Json& json, const char* key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  return found != json.end() && *found == true;
}

std::vector<std::string> Texts(const Json& json, const char* key) {
  std::vector<std::string> texts;
  const auto found = json.is_object() ? json.find(key) : json.end();
  if (found == json.end() || !found->is_array()) return texts;
  for (const Json& text : *found) {
    if (text.is_string()) texts.push_back(text.get<std::string>());
  }
  return texts;
}

const Json& Member(const Json& json, const char* key) {
  static const auto& kNone = *new Json();
  const auto found = json.is_object() ? json.find(key) : json.end();
  return found != json.end() ? *found : kNone;
}

// Empty values are left out, so that InheritTarget() finds what is open.
void PutTexts(std::initializer_list<std::pair<const char*, const std::string*>> texts, Json& json) {
  for (const auto& [key, value] : texts) {
    if (!value->empty()) json[key] = *value;
  }
}

Json HostToJson(const AssignedHost& host) {
  Json json = {{"name", host.spec.name},  {"ssh_address", host.spec.address},
               {"user", host.spec.user},  {"port", host.spec.port},
               {"key", host.spec.key},    {"roles", host.spec.roles},
               {"address", host.address}, {"folder", host.folder},
               {"trainer", host.trainer}, {"cpus", host.cpus}};
  if (host.spec.slots.has_value()) json["slots"] = *host.spec.slots;
  return json;
}

AssignedHost HostFromJson(const Json& json) {
  AssignedHost host;
  host.spec.name = Text(json, "name");
  host.spec.address = Text(json, "ssh_address");
  host.spec.user = Text(json, "user");
  host.spec.port = Count(json, "port").value_or(0);
  host.spec.key = Text(json, "key");
  host.spec.slots = Count(json, "slots");
  host.spec.roles = Texts(json, "roles");
  host.address = Text(json, "address");
  host.folder = Text(json, "folder");
  host.trainer = Text(json, "trainer");
  host.cpus = std::max(1, Count(json, "cpus").value_or(1));
  return host;
}

Json ToJson(const LocalTarget&) { return Json::object(); }

Json ToJson(const SshTarget& target) {
  Json json = Json::object();
  PutTexts({{"hosts", &target.hosts}}, json);
  const HostAssignment& assignment = target.assignment;
  if (assignment.hosts.empty()) return json;
  Json& made = json["assignment"] = {{"agent", assignment.agent},
                                     {"tls", assignment.tls},
                                     {"hosts", Json::array()},
                                     {"holder", Json::object()}};
  for (const AssignedHost& host : assignment.hosts) made["hosts"].push_back(HostToJson(host));
  for (const auto& [task, name] : assignment.holder) made["holder"][task.ToString()] = name;
  return json;
}

SshTarget SshFromJson(const Json& json) {
  SshTarget target{.hosts = Text(json, "hosts")};
  const Json& made = Member(json, "assignment");
  target.assignment.agent = Text(made, "agent");
  target.assignment.tls = IsSet(made, "tls");
  const Json& hosts = Member(made, "hosts");
  if (hosts.is_array()) {
    for (const Json& host : hosts) target.assignment.hosts.push_back(HostFromJson(host));
  }
  const Json& holders = Member(made, "holder");
  if (!holders.is_object()) return target;
  for (const auto& [name, host] : holders.items()) {
    const auto task = TaskId::Parse(name);
    if (task.ok() && host.is_string()) target.assignment.holder[*task] = host.get<std::string>();
  }
  return target;
}

Json ToJson(const KubernetesTarget& target) {
  Json json = Json::object();
  PutTexts({{"kubeconfig", &target.kubeconfig},
            {"context", &target.context},
            {"namespace", &target.ns},
            {"trainer_image", &target.trainer_image},
            {"job", &target.object.name},
            {"uid", &target.object.uid}},
           json);
  return json;
}

KubernetesTarget KubernetesFromJson(const Json& json) {
  return {.kubeconfig = Text(json, "kubeconfig"),
          .context = Text(json, "context"),
          .ns = Text(json, "namespace"),
          .trainer_image = Text(json, "trainer_image"),
          .object = {.name = Text(json, "job"), .uid = Text(json, "uid")}};
}

Json ToJson(const VertexTarget& target) {
  Json json = Json::object();
  PutTexts({{"project", &target.project},
            {"region", &target.region},
            {"bucket", &target.bucket},
            {"scale_tier", &target.tier},
            {"master_type", &target.master_type},
            {"worker_type", &target.worker_type},
            {"parameter_server_type", &target.parameter_server_type},
            {"image", &target.image},
            {"dataset", &target.dataset},
            {"folder", &target.run.folder},
            {"custom_job", &target.run.custom_job},
            {"run_sha256", &target.run.run_sha256},
            {"tls_sha256", &target.run.tls_sha256}},
           json);
  if (target.workers) json["worker_count"] = *target.workers;
  if (target.parameter_servers) json["parameter_server_count"] = *target.parameter_servers;
  if (target.rebuild) json["rebuild"] = true;
  if (!target.run.packages.empty()) json["packages"] = target.run.packages;
  if (!target.run.tries.empty()) json["tries"] = target.run.tries;
  if (target.run.asked_us != 0) json["asked_us"] = target.run.asked_us;
  return json;
}

VertexTarget VertexFromJson(const Json& json) {
  return {.project = Text(json, "project"),
          .region = Text(json, "region"),
          .bucket = Text(json, "bucket"),
          .tier = Text(json, "scale_tier"),
          .master_type = Text(json, "master_type"),
          .worker_type = Text(json, "worker_type"),
          .parameter_server_type = Text(json, "parameter_server_type"),
          .workers = Count(json, "worker_count"),
          .parameter_servers = Count(json, "parameter_server_count"),
          .image = Text(json, "image"),
          .dataset = Text(json, "dataset"),
          .rebuild = IsSet(json, "rebuild"),
          .run = {.packages = Texts(json, "packages"),
                  .folder = Text(json, "folder"),
                  .custom_job = Text(json, "custom_job"),
                  .tries = Texts(json, "tries"),
                  .run_sha256 = Text(json, "run_sha256"),
                  .tls_sha256 = Text(json, "tls_sha256"),
                  .asked_us = Number(json, "asked_us").value_or(0)}};
}

}  // namespace

const AssignedHost& HostAssignment::HostOf(const TaskId& task) const {
  const std::string& name = holder.at(task);
  return *std::find_if(hosts.begin(), hosts.end(),
                       [&](const AssignedHost& host) { return host.spec.name == name; });
}

std::string VertexTarget::FolderOf(const std::string& id) const {
  return absl::StrCat("gs://", bucket, "/muster_", id);
}

absl::string_view PlatformOf(const Target& target) {
  constexpr absl::string_view kNames[] = {kLocal, kSsh, kKubernetes, kVertex};
  static_assert(std::variant_size_v<Target> == std::size(kNames));
  return kNames[target.index()];
}

bool IsForeign(const Target& target) {
  if (const auto* cluster = std::get_if<KubernetesTarget>(&target)) {
    return !cluster->object.name.empty();
  }
  const auto* vertex = std::get_if<VertexTarget>(&target);
  return vertex != nullptr && vertex->run.tries.empty() && !vertex->run.custom_job.empty();
}

Json TargetToJson(const Target& target) {
  Json json = std::visit([](const auto& one) { return ToJson(one); }, target);
  json[kPlatform] = std::string(PlatformOf(target));
  return json;
}

Target TargetFromJson(const Json& json) {
  const std::string platform = Text(json, kPlatform);
  if (platform == kSsh) return SshFromJson(json);
  if (platform == kKubernetes) return KubernetesFromJson(json);
  if (platform == kVertex) return VertexFromJson(json);
  return LocalTarget();
}

Target InheritTarget(const Target& previous, const Target& next) {
  Json merged = TargetToJson(previous);
  merged.update(TargetToJson(next));
  return TargetFromJson(merged);
}

}  // namespace muster
