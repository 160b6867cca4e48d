#include "launch/ssh/place.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "cluster/address.h"
#include "launch/job_dir.h"
#include "launch/platform.h"
#include "launch/ssh/protocol.h"

namespace muster::ssh {
namespace {

Json HostToJson(const PlacedHost& host) {
  Json json = {{"name", host.spec.name},  {"ssh_address", host.spec.address},
               {"user", host.spec.user},  {"port", host.spec.port},
               {"key", host.spec.key},    {"roles", host.spec.roles},
               {"address", host.address}, {"folder", host.folder},
               {"trainer", host.trainer}, {"cpus", host.cpus}};
  if (host.spec.slots.has_value()) json["slots"] = *host.spec.slots;
  return json;
}

PlacedHost HostFromJson(const Json& json) {
  PlacedHost host;
  host.spec.name = TextAt(json, "name");
  host.spec.address = TextAt(json, "ssh_address");
  host.spec.user = TextAt(json, "user");
  host.spec.port = static_cast<int>(NumberAt(json, "port"));
  host.spec.key = TextAt(json, "key");
  if (json.contains("slots")) host.spec.slots = static_cast<int>(NumberAt(json, "slots"));
  if (json.contains("roles") && json["roles"].is_array()) {
    for (const Json& role : json["roles"]) {
      if (role.is_string()) host.spec.roles.push_back(role);
    }
  }
  host.address = TextAt(json, "address");
  host.folder = TextAt(json, "folder");
  host.trainer = TextAt(json, "trainer");
  host.cpus = static_cast<int>(std::max<int64_t>(1, NumberAt(json, "cpus")));
  return host;
}

std::string FixedAddress(const JobSpec& spec, const JobPlace& place, const TaskId& task) {
  const RoleSpec& role = *spec.FindRole(task.role);
  if (!role.addresses.empty()) return role.addresses[static_cast<size_t>(task.index)];
  if (!role.port.has_value() || spec.format != JobFormat::kNative) return "";
  // Tasks of a role that share a host cannot share a port.
  int port = *role.port;
  for (int i = 0; i < task.index; ++i) {
    if (place.HostOf({task.role, i}).spec.name == place.HostOf(task).spec.name) ++port;
  }
  return MakeAddress(place.HostOf(task).address, port);
}

// ps and evaluator mostly wait for the others.
int ComputingTasksOn(const JobSpec& spec, const JobPlace& place, const std::string& host) {
  const std::vector<TaskId> tasks = spec.Tasks();
  const auto count = std::count_if(tasks.begin(), tasks.end(), [&](const TaskId& task) {
    return !IsServiceRole(task.role) && place.HostOf(task).spec.name == host;
  });
  return std::max(1, static_cast<int>(count));
}

}  // namespace

bool JobPlace::Is(const nlohmann::json& place) {
  return place.is_object() && place.contains("hosts") && place["hosts"].is_array();
}

JobPlace JobPlace::FromJson(const nlohmann::json& json) {
  JobPlace place{.agent = TextAt(json, "agent"), .tls = IsSet(json, "tls")};
  if (!Is(json)) return place;
  for (const Json& host : json["hosts"]) place.hosts.push_back(HostFromJson(host));
  const auto holders = json.find("holder");
  if (holders == json.end() || !holders->is_object()) return place;
  for (const auto& [name, host] : holders->items()) {
    const auto task = TaskId::Parse(name);
    if (task.ok() && host.is_string()) place.holder[*task] = host.get<std::string>();
  }
  return place;
}

absl::StatusOr<JobPlace> JobPlace::Of(const Submission& submission) {
  JobPlace place = FromJson(submission.place);
  for (const TaskId& task : submission.spec.Tasks()) {
    const auto holder = place.holder.find(task);
    const bool known =
        holder != place.holder.end() &&
        std::any_of(place.hosts.begin(), place.hosts.end(),
                    [&](const PlacedHost& host) { return host.spec.name == holder->second; });
    if (!known) return absl::DataLossError("the job's hosts are not recorded");
  }
  return place;
}

nlohmann::json JobPlace::ToJson() const {
  Json json = {
      {"agent", agent}, {"tls", tls}, {"hosts", Json::array()}, {"holder", Json::object()}};
  for (const PlacedHost& host : hosts) json["hosts"].push_back(HostToJson(host));
  for (const auto& [task, name] : holder) json["holder"][task.ToString()] = name;
  return json;
}

const PlacedHost& JobPlace::HostOf(const TaskId& task) const {
  const std::string& name = holder.at(task);
  return *std::find_if(hosts.begin(), hosts.end(),
                       [&](const PlacedHost& host) { return host.spec.name == name; });
}

bool IsPicked(const JobSpec& spec, const TaskId& task) {
  const RoleSpec* role = spec.FindRole(task.role);
  if (role == nullptr) return false;
  return role->addresses.empty() && (!role->port.has_value() || spec.format != JobFormat::kNative);
}

ClusterSpec PlanAddresses(const JobSpec& spec, const JobPlace& place, const ClusterSpec& current) {
  ClusterSpec cluster;
  for (const TaskId& task : spec.Tasks()) {
    std::string address = FixedAddress(spec, place, task);
    if (address.empty()) {
      const std::string now(current.AddressOf(task));
      const auto parsed = ParseAddress(now);
      const bool stays = parsed.has_value() && parsed->host == place.HostOf(task).address;
      address = stays ? now : kUnassigned;
    }
    cluster.Set(task, address);
  }
  return cluster;
}

absl::StatusOr<TaskLaunch> LaunchOf(const Submission& submission, const JobPlace& place,
                                    const ClusterSpec& cluster, const TaskId& task, int attempt,
                                    int restarts) {
  const PlacedHost& host = place.HostOf(task);
  const JobDir dir(host.folder.empty()
                       ? absl::StrCat("~/.cache/muster/jobs/", submission.id, "@", host.spec.name)
                       : host.folder);
  const LaunchContext context{
      .job_id = submission.id,
      .working_dir = JoinPath(dir.path(), "work"),
      .trainer = host.trainer.empty() ? "muster-trainer" : host.trainer,
      .train_config = dir.train_config(),
      .run_dir = dir.run_dir(task),
      .tls_dir = place.tls ? JoinPath(dir.path(), "tls") : "",
      .attempt = attempt,
      .restart_count = restarts,
      .cpus = host.cpus,
      .tasks_on_host = ComputingTasksOn(submission.spec, place, host.spec.name),
      .resumed = !submission.resumed_from.empty(),
      .resume_step = submission.resume_step,
  };
  return BuildTaskLaunch(submission.spec, cluster, task, context);
}

}  // namespace muster::ssh
