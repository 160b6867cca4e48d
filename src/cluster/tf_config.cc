#include "cluster/tf_config.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "base/text/terminal_text.h"
#include "cluster/address.h"
#include "nlohmann/json.hpp"

namespace muster::cluster {
namespace {

using Json = nlohmann::json;

constexpr char kLocal[] = "local";
constexpr char kCloud[] = "cloud";

std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", base::Ellipsize(base::Printable(text), 60), "\"");
}

// Describes a value for messages. Does not print containers: input controls their size and depth,
// and printing is recursive.
std::string Describe(const Json& value) {
  if (value.is_string()) return Quoted(value.get_ref<const std::string&>());
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  return value.dump();
}

absl::Status Mistake(absl::string_view where, absl::string_view expected, const Json& value) {
  return absl::InvalidArgumentError(
      absl::StrCat("TF_CONFIG: ", where, " must be ", expected, ", got ", Describe(value)));
}

std::optional<int> ParseIndex(absl::string_view digits) {
  int index = 0;
  if (!std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit)) return std::nullopt;
  if (!absl::SimpleAtoi(digits, &index)) return std::nullopt;
  return index;
}

// Accepts a quoted index too: TensorFlow passes it through int(), so such scripts are common.
std::optional<int> ReadIndex(const Json& value) {
  if (value.is_string()) return ParseIndex(value.get_ref<const std::string&>());
  if (!value.is_number_unsigned()) return std::nullopt;
  const uint64_t index = value.get<uint64_t>();
  if (index > static_cast<uint64_t>(std::numeric_limits<int>::max())) return std::nullopt;
  return static_cast<int>(index);
}

absl::Status ReadAddress(const Json& value, const std::string& where, const TaskId& task,
                         ClusterSpec& cluster) {
  if (!value.is_string() || !ParseAddress(value.get_ref<const std::string&>())) {
    return Mistake(where, "\"host:port\"", value);
  }
  cluster.Set(task, value.get<std::string>());
  return absl::OkStatus();
}

absl::Status ReadRole(const std::string& role, const Json& value, ClusterSpec& cluster) {
  const std::string where = absl::StrCat("cluster.", base::Ellipsize(base::Printable(role), 60));
  if (role.empty()) {
    return absl::InvalidArgumentError("TF_CONFIG: cluster has a role without a name");
  }
  if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) {
      MUSTER_RETURN_IF_ERROR(ReadAddress(value[i], absl::StrCat(where, "[", i, "]"),
                                         {role, static_cast<int>(i)}, cluster));
    }
    return absl::OkStatus();
  }
  if (!value.is_object()) {
    return Mistake(where, "a list of \"host:port\" or an object of index to \"host:port\"", value);
  }
  for (const auto& [key, address] : value.items()) {
    const std::optional<int> index = ParseIndex(key);
    if (!index) {
      return absl::InvalidArgumentError(
          absl::StrCat("TF_CONFIG: ", where, ": keys must be task indices, got ", Quoted(key)));
    }
    MUSTER_RETURN_IF_ERROR(
        ReadAddress(address, absl::StrCat(where, "[", Quoted(key), "]"), {role, *index}, cluster));
  }
  return absl::OkStatus();
}

absl::StatusOr<ClusterSpec> ReadCluster(const Json& value) {
  ClusterSpec cluster;
  if (value.is_null()) return cluster;
  if (!value.is_object()) return Mistake("cluster", "an object of role to addresses", value);
  for (const auto& [role, addresses] : value.items()) {
    MUSTER_RETURN_IF_ERROR(ReadRole(role, addresses, cluster));
  }
  return cluster;
}

absl::StatusOr<std::optional<TaskId>> ReadTask(const Json& value) {
  if (value.is_null()) return std::nullopt;
  if (!value.is_object()) return Mistake("task", "an object with type and index", value);
  const Json& type = base::MemberOf(value, "type");
  const Json& index = base::MemberOf(value, "index");
  if (!type.is_null() && !type.is_string()) return Mistake("task.type", "a role's name", type);
  const std::optional<int> number = index.is_null() ? 0 : ReadIndex(index);
  if (!number) return Mistake("task.index", "a whole number from 0", index);
  if (type.is_null() || type.get_ref<const std::string&>().empty()) return std::nullopt;
  return TaskId{type.get<std::string>(), *number};
}

std::string DescribeIndices(const ClusterSpec::Addresses& addresses) {
  const int first = addresses.begin()->first;
  const int last = addresses.rbegin()->first;
  if (addresses.size() == 1) return absl::StrCat("only ", first);
  return absl::StrCat(addresses.size(), " tasks, ", first, " to ", last);
}

// `source` starts the message: it names where the task comes from.
absl::Status CheckTask(const ClusterSpec& cluster, const TaskId& task, absl::string_view source) {
  if (cluster.Contains(task) || task.role == "evaluator") return absl::OkStatus();
  const auto role = cluster.roles().find(task.role);
  if (role != cluster.roles().end()) {
    return absl::InvalidArgumentError(absl::StrCat(source, ": the cluster has no ", task.ToString(),
                                                   "; role ", task.role, " has ",
                                                   DescribeIndices(role->second)));
  }
  // A single training process needs no cluster, whatever its role.
  const bool trains = task.role == "chief" || task.role == "master" || task.role == "worker";
  if (cluster.empty() && trains && task.index == 0) return absl::OkStatus();
  std::string known;
  for (const auto& [name, addresses] : cluster.roles()) {
    absl::StrAppend(&known, known.empty() ? "" : ", ", base::Ellipsize(base::Printable(name), 60));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(source, ": the task ", base::Ellipsize(base::Printable(task.ToString()), 60),
                   " is not in the cluster, which has ",
                   known.empty() ? "no tasks" : absl::StrCat("the roles ", known)));
}

absl::StatusOr<std::string> ReadModelDir(const Json& value, absl::string_view configured) {
  if (value.is_null()) return std::string(configured);
  if (!value.is_string()) return Mistake("model_dir", "a path or URL", value);
  const std::string& given = value.get_ref<const std::string&>();
  if (given.empty()) return std::string(configured);
  if (!configured.empty() && given != configured) {
    return absl::InvalidArgumentError(
        absl::StrCat("TF_CONFIG: model_dir is ", Quoted(given), " but the configuration has ",
                     Quoted(configured), "; remove one, or make them equal"));
  }
  return given;
}

absl::StatusOr<std::string> ReadEnvironment(const Json& value) {
  if (value.is_null()) return std::string(kLocal);
  if (value != kLocal && value != kCloud) {
    return Mistake("environment", "\"local\" or \"cloud\"", value);
  }
  return value.get<std::string>();
}

bool IsDense(const ClusterSpec::Addresses& addresses) {
  return addresses.empty() || (addresses.begin()->first == 0 &&
                               addresses.rbegin()->first == static_cast<int>(addresses.size()) - 1);
}

nlohmann::ordered_json ClusterToJson(const ClusterSpec& cluster) {
  auto json = nlohmann::ordered_json::object();
  for (const auto& [role, addresses] : cluster.roles()) {
    const bool dense = IsDense(addresses);
    auto& out = json[role] =
        dense ? nlohmann::ordered_json::array() : nlohmann::ordered_json::object();
    for (const auto& [index, address] : addresses) {
      if (dense) {
        out.push_back(address);
      } else {
        out[absl::StrCat(index)] = address;
      }
    }
  }
  return json;
}

// Writes a partial cluster as Kubeflow does: workers always by index, and both ps and worker
// present even if empty. `lists` selects the form of sparseCluster, in which the other roles are
// lists even if indices are missing. The form of cluster keeps the indices, which TensorFlow needs.
nlohmann::ordered_json SparseToJson(const ClusterSpec& cluster, bool lists) {
  auto json = ClusterToJson(cluster);
  for (const auto& [role, addresses] : cluster.roles()) {
    if (role != "worker" && (!lists || IsDense(addresses))) continue;
    const bool by_index = role == "worker";
    auto& out = json[role] =
        by_index ? nlohmann::ordered_json::object() : nlohmann::ordered_json::array();
    for (const auto& [index, address] : addresses) {
      if (by_index) {
        out[absl::StrCat(index)] = address;
      } else {
        out.push_back(address);
      }
    }
  }
  if (!json.contains("ps")) json["ps"] = nlohmann::ordered_json::array();
  if (!json.contains("worker")) json["worker"] = nlohmann::ordered_json::object();
  return json;
}

absl::Status AddHosts(const std::string& role, absl::string_view hosts, ClusterSpec& cluster) {
  if (hosts.empty()) return absl::OkStatus();
  int index = 0;
  for (absl::string_view address : absl::StrSplit(hosts, ',')) {
    if (!ParseAddress(address)) {
      return absl::InvalidArgumentError(absl::StrCat("--", role,
                                                     "_hosts must be host:port,host:port,…; entry ",
                                                     index, " is ", Quoted(address)));
    }
    cluster.Set({role, index++}, std::string(address));
  }
  return absl::OkStatus();
}

}  // namespace

std::string WriteTfConfig(const TfConfig& config) {
  auto json = nlohmann::ordered_json::object();
  json["cluster"] =
      config.sparse ? SparseToJson(config.cluster, /*lists=*/false) : ClusterToJson(config.cluster);
  if (config.sparse) json["sparseCluster"] = SparseToJson(config.cluster, /*lists=*/true);
  if (config.task) json["task"] = {{"type", config.task->role}, {"index", config.task->index}};
  if (!config.model_dir.empty()) json["model_dir"] = config.model_dir;
  if (!config.environment.empty()) json["environment"] = config.environment;
  // `replace` keeps dump() from throwing on invalid UTF-8.
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

absl::StatusOr<TfConfig> ReadTfConfig(absl::string_view json, absl::string_view model_dir) {
  // An empty variable counts as unset.
  if (absl::StripAsciiWhitespace(json).empty()) json = "{}";
  const Json document = base::ParseJson(json);
  if (document.is_discarded()) {
    return absl::InvalidArgumentError(absl::StrCat("TF_CONFIG is not valid JSON: ", Quoted(json)));
  }
  if (!document.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "TF_CONFIG must be an object with cluster and task, got ", Describe(document)));
  }
  TfConfig config;
  config.sparse = document.contains("sparseCluster");
  const bool alone = config.sparse && !document.contains("cluster");
  MUSTER_ASSIGN_OR_RETURN(
      config.cluster, ReadCluster(base::MemberOf(document, alone ? "sparseCluster" : "cluster")));
  MUSTER_ASSIGN_OR_RETURN(config.task, ReadTask(base::MemberOf(document, "task")));
  MUSTER_ASSIGN_OR_RETURN(config.model_dir,
                          ReadModelDir(base::MemberOf(document, "model_dir"), model_dir));
  MUSTER_ASSIGN_OR_RETURN(config.environment,
                          ReadEnvironment(base::MemberOf(document, "environment")));
  if (config.task) MUSTER_RETURN_IF_ERROR(CheckTask(config.cluster, *config.task, "TF_CONFIG"));
  return config;
}

bool IsChief(const TfConfig& config) {
  if (!config.task || config.cluster.empty()) return true;
  for (const char* role : {"master", "chief"}) {
    const TaskId leader{role, 0};
    if (config.cluster.Contains(leader)) return *config.task == leader;
  }
  return *config.task == TaskId{"worker", 0};
}

std::vector<std::string> WriteTaskFlags(const ClusterSpec& cluster, const TaskId& task) {
  return {absl::StrCat("--job_name=", task.role), absl::StrCat("--task_index=", task.index),
          absl::StrCat("--ps_hosts=", cluster.Hosts("ps")),
          absl::StrCat("--worker_hosts=", cluster.Hosts("worker"))};
}

absl::StatusOr<TfConfig> ReadTaskFlags(const TaskFlags& flags) {
  TfConfig config;
  MUSTER_RETURN_IF_ERROR(AddHosts("ps", flags.ps_hosts, config.cluster));
  MUSTER_RETURN_IF_ERROR(AddHosts("worker", flags.worker_hosts, config.cluster));
  config.environment = config.cluster.size() > 1 ? kCloud : kLocal;
  if (flags.job_name.empty()) {
    if (config.cluster.empty()) return config;
    return absl::InvalidArgumentError(
        "--ps_hosts and --worker_hosts need --job_name, ps or worker");
  }
  if (flags.task_index < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--task_index must be 0 or more, got ", flags.task_index));
  }
  config.task = TaskId{flags.job_name, flags.task_index};
  MUSTER_RETURN_IF_ERROR(CheckTask(config.cluster, *config.task, "--job_name and --task_index"));
  return config;
}

}  // namespace muster::cluster
