#include "job/target.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/json.h"

namespace muster::job {
namespace {

using Json = nlohmann::json;

constexpr char kLocal[] = "local";
constexpr char kSsh[] = "ssh";
constexpr char kKubernetes[] = "kubernetes";
constexpr char kVertex[] = "vertex";
constexpr char kPlatform[] = "platform";
constexpr char kImage[] = "image";
constexpr char kTrainerImage[] = "trainer_image";
constexpr char kImageRepository[] = "image_repository";

std::optional<int> CountMember(const Json& json, const char* key) {
  const auto number = base::OptionalIntMember(json, key);
  if (!number) return std::nullopt;
  return static_cast<int>(*number);
}

// Omits empty values, so that InheritTarget() can distinguish fields that are not set.
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
  host.spec.name = base::TextMember(json, "name");
  host.spec.address = base::TextMember(json, "ssh_address");
  host.spec.user = base::TextMember(json, "user");
  host.spec.port = CountMember(json, "port").value_or(0);
  host.spec.key = base::TextMember(json, "key");
  host.spec.slots = CountMember(json, "slots");
  host.spec.roles = base::TextListMember(json, "roles");
  host.address = base::TextMember(json, "address");
  host.folder = base::TextMember(json, "folder");
  host.trainer = base::TextMember(json, "trainer");
  host.cpus = std::max(1, CountMember(json, "cpus").value_or(1));
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
  SshTarget target{.hosts = base::TextMember(json, "hosts")};
  const Json& made = base::MemberOf(json, "assignment");
  target.assignment.agent = base::TextMember(made, "agent");
  target.assignment.tls = base::BoolMember(made, "tls");
  const Json& hosts = base::MemberOf(made, "hosts");
  if (hosts.is_array()) {
    for (const Json& host : hosts) target.assignment.hosts.push_back(HostFromJson(host));
  }
  const Json& holders = base::MemberOf(made, "holder");
  if (!holders.is_object()) return target;
  for (const auto& [name, host] : holders.items()) {
    const auto task = cluster::TaskId::Parse(name);
    if (task.ok() && host.is_string()) target.assignment.holder[*task] = host.get<std::string>();
  }
  return target;
}

Json ToJson(const KubernetesTarget& target) {
  Json json = Json::object();
  PutTexts({{"kubeconfig", &target.kubeconfig},
            {"context", &target.context},
            {"namespace", &target.ns},
            {kTrainerImage, &target.trainer_image},
            {kImageRepository, &target.image_repository},
            {"job", &target.object.name},
            {"uid", &target.object.uid}},
           json);
  if (const KubernetesFiles& files = target.files; !files.digest.empty()) {
    json["files"] = {{"digest", files.digest}, {"parts", files.parts}, {"roles", files.roles}};
  }
  return json;
}

KubernetesTarget KubernetesFromJson(const Json& json) {
  const Json& files = base::MemberOf(json, "files");
  return {.kubeconfig = base::TextMember(json, "kubeconfig"),
          .context = base::TextMember(json, "context"),
          .ns = base::TextMember(json, "namespace"),
          .trainer_image = base::TextMember(json, kTrainerImage),
          .image_repository = base::TextMember(json, kImageRepository),
          .object = {.name = base::TextMember(json, "job"), .uid = base::TextMember(json, "uid")},
          .files = {.digest = base::TextMember(files, "digest"),
                    .parts = CountMember(files, "parts").value_or(0),
                    .roles = base::TextListMember(files, "roles")}};
}

Json ToJson(const VertexTarget& target) {
  Json json = Json::object();
  PutTexts({{"project", &target.project},
            {"region", &target.region},
            {"bucket", &target.bucket},
            {"folder_prefix", &target.folder_prefix},
            {"scale_tier", &target.tier},
            {"master_type", &target.master_type},
            {"worker_type", &target.worker_type},
            {"parameter_server_type", &target.parameter_server_type},
            {kImage, &target.image},
            {kImageRepository, &target.image_repository},
            {"dataset", &target.dataset},
            {"folder", &target.run.folder},
            {"custom_job", &target.run.custom_job},
            {"run_sha256", &target.run.run_sha256},
            {"tls_sha256", &target.run.tls_sha256},
            {"agent_sha256", &target.run.agent_sha256}},
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
  return {.project = base::TextMember(json, "project"),
          .region = base::TextMember(json, "region"),
          .bucket = base::TextMember(json, "bucket"),
          .folder_prefix = base::TextMember(json, "folder_prefix"),
          .tier = base::TextMember(json, "scale_tier"),
          .master_type = base::TextMember(json, "master_type"),
          .worker_type = base::TextMember(json, "worker_type"),
          .parameter_server_type = base::TextMember(json, "parameter_server_type"),
          .workers = CountMember(json, "worker_count"),
          .parameter_servers = CountMember(json, "parameter_server_count"),
          .image = base::TextMember(json, kImage),
          .image_repository = base::TextMember(json, kImageRepository),
          .dataset = base::TextMember(json, "dataset"),
          .rebuild = base::BoolMember(json, "rebuild"),
          .run = {.packages = base::TextListMember(json, "packages"),
                  .folder = base::TextMember(json, "folder"),
                  .custom_job = base::TextMember(json, "custom_job"),
                  .tries = base::TextListMember(json, "tries"),
                  .run_sha256 = base::TextMember(json, "run_sha256"),
                  .tls_sha256 = base::TextMember(json, "tls_sha256"),
                  .agent_sha256 = base::TextMember(json, "agent_sha256"),
                  .asked_us = base::IntMember(json, "asked_us")}};
}

std::string Describe(const LocalTarget&) { return "on this machine"; }

std::string Describe(const SshTarget& target) {
  const std::vector<AssignedHost>& hosts = target.assignment.hosts;
  if (hosts.empty()) return "on hosts over SSH";
  return absl::StrCat("on ",
                      absl::StrJoin(hosts, ", ", [](std::string* out, const AssignedHost& host) {
                        absl::StrAppend(out, host.spec.name);
                      }));
}

std::string Describe(const KubernetesTarget& target) {
  return absl::StrCat(
      "in namespace '", target.ns, "' of ",
      target.context.empty() ? "this cluster" : absl::StrCat("context '", target.context, "'"));
}

std::string Describe(const VertexTarget& target) {
  return absl::StrCat("on Vertex AI, in project '", target.project, "', region ", target.region);
}

}  // namespace

const AssignedHost& HostAssignment::HostOf(const cluster::TaskId& task) const {
  const std::string& name = holder.at(task);
  return *std::find_if(hosts.begin(), hosts.end(),
                       [&](const AssignedHost& host) { return host.spec.name == name; });
}

std::string VertexTarget::FolderOf(const std::string& id) const {
  return absl::StrCat("gs://", bucket, "/",
                      folder_prefix.empty() ? kDefaultFolderPrefix : folder_prefix, id);
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

Target RequestOf(const Target& target) {
  Target request = target;
  if (auto* ssh = std::get_if<SshTarget>(&request)) ssh->assignment = {};
  if (auto* cluster = std::get_if<KubernetesTarget>(&request)) {
    cluster->object = {};
    cluster->files = {};
  }
  if (auto* vertex = std::get_if<VertexTarget>(&request)) vertex->run = {};
  return request;
}

std::string DescribeTarget(const Target& target) {
  return std::visit([](const auto& one) { return Describe(one); }, target);
}

Json TargetToJson(const Target& target) {
  Json json = std::visit([](const auto& one) { return ToJson(one); }, target);
  json[kPlatform] = std::string(PlatformOf(target));
  return json;
}

Target TargetFromJson(const Json& json) {
  const std::string platform = base::TextMember(json, kPlatform);
  if (platform == kSsh) return SshFromJson(json);
  if (platform == kKubernetes) return KubernetesFromJson(json);
  if (platform == kVertex) return VertexFromJson(json);
  return LocalTarget();
}

Target TargetFromPlace(const Json& place) {
  if (!place.is_object()) return LocalTarget();
  // The members identify the platform. Those of hosts were not in a member of their own.
  if (place.contains("hosts")) return SshFromJson({{"assignment", place}});
  if (place.contains("namespace")) return KubernetesFromJson(place);
  return VertexFromJson(place);
}

// Merges as JSON, where a field that is not set is absent.
Target InheritTarget(const Target& previous, const Target& next) {
  Json merged = TargetToJson(previous);
  const Json own = TargetToJson(next);
  const auto images = {kImage, kTrainerImage, kImageRepository};
  if (std::any_of(images.begin(), images.end(),
                  [&own](const char* key) { return own.contains(key); })) {
    for (const char* key : images) merged.erase(key);
  }
  merged.update(own);
  return TargetFromJson(merged);
}

}  // namespace muster::job
