#include "platform/vertex/pools.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "base/text/units.h"
#include "nlohmann/json.hpp"

namespace muster::vertex {
namespace {

enum Kind { kLeading = 0, kWorkers = 1, kServers = 2, kEvaluators = 3 };

constexpr absl::string_view kPoolName = "workerpool";
constexpr char kLoneAddress[] = "localhost:2222";

// Returns the role whose first task leads.
const job::RoleSpec* LeadingRole(const job::JobSpec& spec) {
  for (const job::RoleSpec& role : spec.roles) {
    if (job::IsChiefRole(role.name)) return &role;
  }
  if (const job::RoleSpec* worker = spec.FindRole("worker")) return worker;
  for (const job::RoleSpec& role : spec.roles) {
    if (!job::IsServiceRole(role.name)) return &role;
  }
  return spec.roles.empty() ? nullptr : &spec.roles.front();
}

absl::StatusOr<Kind> KindOf(const job::RoleSpec& role, const job::RoleSpec& leading) {
  if (role.name == "ps") return kServers;
  if (role.name == "evaluator") return kEvaluators;
  if (role.name == "worker" || role.name == leading.name) return kWorkers;
  return absl::InvalidArgumentError(absl::StrCat(
      "role '", role.name,
      "': a job on Vertex AI consists of a chief, workers, ps and evaluators, ", "and '",
      leading.name, "' leads it; give the role one of these names, or remove it"));
}

std::optional<int> PoolNumber(absl::string_view text) {
  int number = 0;
  if (!absl::ConsumePrefix(&text, kPoolName) || !absl::SimpleAtoi(text, &number)) {
    return std::nullopt;
  }
  return number >= 0 && number < kPools ? std::optional<int>(number) : std::nullopt;
}

absl::Status Unfit(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(
      "CLUSTER_SPEC, which Vertex AI sets in a container, does not fit the job: ", why));
}

// Adds the host:port of each replica of a pool.
absl::Status AddPool(const nlohmann::json& addresses, const std::vector<cluster::TaskId>& tasks,
                     cluster::ClusterSpec& cluster) {
  const size_t count = addresses.is_array() ? addresses.size() : 0;
  if (count != tasks.size()) {
    return Unfit(absl::StrCat(base::Plural(static_cast<int64_t>(count), "address"), " for ",
                              base::Plural(static_cast<int64_t>(tasks.size()), "task")));
  }
  for (size_t i = 0; i < count; ++i) {
    if (!addresses[i].is_string()) return Unfit("an address is not a string");
    cluster.Set(tasks[i], addresses[i].get<std::string>());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Pools> PoolsOf(const job::JobSpec& spec) {
  const job::RoleSpec* leading = LeadingRole(spec);
  if (leading == nullptr) return absl::InvalidArgumentError("the job has no roles");
  Pools pools;
  for (const job::RoleSpec& role : spec.roles) {
    MUSTER_ASSIGN_OR_RETURN(const Kind kind, KindOf(role, *leading));
    for (int i = 0; i < role.replicas; ++i) {
      const bool leads = &role == leading && i == 0;
      pools.at(leads ? kLeading : kind).push_back({role.name, i});
    }
  }
  if (job::IsChiefRole(leading->name) && leading->replicas > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("role '", leading->name, "' has ", leading->replicas,
                     " replicas; on Vertex AI one task leads: make the others workers"));
  }
  return pools;
}

std::optional<cluster::TaskId> FindTask(const Pools& pools, absl::string_view name) {
  const size_t dash = name.rfind('-');
  if (dash == absl::string_view::npos) return std::nullopt;
  const auto pool = PoolNumber(name.substr(0, dash));
  size_t replica = 0;
  if (!pool || !absl::SimpleAtoi(name.substr(dash + 1), &replica)) return std::nullopt;
  const std::vector<cluster::TaskId>& tasks = pools.at(static_cast<size_t>(*pool));
  return replica < tasks.size() ? std::optional<cluster::TaskId>(tasks[replica]) : std::nullopt;
}

std::string ReplicaName(const Pools& pools, const cluster::TaskId& task) {
  for (size_t i = 0; i < pools.size(); ++i) {
    const auto found = std::find(pools.at(i).begin(), pools.at(i).end(), task);
    if (found == pools.at(i).end()) continue;
    return absl::StrCat(kPoolName, i, "-", found - pools.at(i).begin());
  }
  return "";
}

absl::StatusOr<Membership> ReadClusterSpec(const job::JobSpec& spec, absl::string_view text) {
  MUSTER_ASSIGN_OR_RETURN(const Pools pools, PoolsOf(spec));
  Membership membership{.self = pools[kLeading].front()};
  if (text.empty()) {
    if (spec.Tasks().size() > 1) return Unfit("it is not set, and the job has several tasks");
    membership.cluster.Set(membership.self, kLoneAddress);
    return membership;
  }
  const auto json = base::ParseJson(text);
  if (!json.is_object() || !json.contains("cluster") || !json["cluster"].is_object() ||
      !json.contains("task") || !json["task"].is_object()) {
    return Unfit("it is not a JSON object with a cluster and a task");
  }
  for (size_t i = 0; i < pools.size(); ++i) {
    const auto found = json["cluster"].find(absl::StrCat(kPoolName, i));
    const bool given = found != json["cluster"].end();
    if (!given && pools.at(i).empty()) continue;
    MUSTER_RETURN_IF_ERROR(
        AddPool(given ? *found : nlohmann::json(), pools.at(i), membership.cluster));
  }
  const nlohmann::json& task = json["task"];
  const auto type = task.find("type");
  const auto index = task.find("index");
  const bool named = type != task.end() && type->is_string();
  const bool counted = index != task.end() && index->is_number_unsigned();
  const auto self = FindTask(pools, absl::StrCat(named ? type->get<std::string>() : "", "-",
                                                 counted ? index->get<uint64_t>() : 0));
  if (!self) return Unfit("the job has no such task");
  membership.self = *self;
  return membership;
}

}  // namespace muster::vertex
