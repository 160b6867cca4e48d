#include "cluster/ranks.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cluster/address.h"

namespace muster::cluster {
namespace {

std::string HostOf(absl::string_view address) {
  const std::optional<Address> parsed = ParseAddress(address);
  return parsed ? parsed->host : std::string(address);
}

// The position of a rank on its host. Hosts are numbered by their lowest rank.
struct LocalRank {
  int local_rank = 0;
  int local_world_size = 0;
  int group_rank = 0;
};

LocalRank LocalRankOf(const ClusterSpec& cluster, const std::vector<TaskId>& ranked, size_t rank) {
  const std::string own_host = HostOf(cluster.AddressOf(ranked[rank]));
  LocalRank local;
  std::set<std::string> earlier_hosts;
  for (size_t i = 0; i < ranked.size(); ++i) {
    std::string host = HostOf(cluster.AddressOf(ranked[i]));
    if (host == own_host) {
      if (i < rank) ++local.local_rank;
      ++local.local_world_size;
    } else if (local.local_world_size == 0) {
      earlier_hosts.insert(std::move(host));
    }
  }
  local.group_rank = static_cast<int>(earlier_hosts.size());
  return local;
}

}  // namespace

std::vector<TaskId> RankedTasks(const ClusterSpec& cluster) {
  std::vector<TaskId> ranked;
  const auto append = [&](const std::string& role, const ClusterSpec::Addresses& addresses) {
    for (const auto& [index, address] : addresses) ranked.push_back({role, index});
  };
  constexpr absl::string_view kLeaders[] = {"chief", "master", "worker"};
  for (absl::string_view role : kLeaders) {
    const auto found = cluster.roles().find(std::string(role));
    if (found != cluster.roles().end()) append(found->first, found->second);
  }
  for (const auto& [role, addresses] : cluster.roles()) {
    if (role == "ps" || role == "evaluator") continue;
    if (std::find(std::begin(kLeaders), std::end(kLeaders), role) != std::end(kLeaders)) continue;
    append(role, addresses);
  }
  return ranked;
}

std::map<std::string, std::string> CollectiveVariables(const ClusterSpec& cluster,
                                                       const TaskId& task) {
  const std::vector<TaskId> ranked = RankedTasks(cluster);
  const auto self = std::find(ranked.begin(), ranked.end(), task);
  if (self == ranked.end()) return {};
  const size_t rank = static_cast<size_t>(self - ranked.begin());
  const LocalRank local = LocalRankOf(cluster, ranked, rank);
  const absl::string_view leader = cluster.AddressOf(ranked.front());

  std::map<std::string, std::string> variables = {
      {"RANK", absl::StrCat(rank)},
      {"WORLD_SIZE", absl::StrCat(ranked.size())},
      {"LOCAL_RANK", absl::StrCat(local.local_rank)},
      {"LOCAL_WORLD_SIZE", absl::StrCat(local.local_world_size)},
      {"GROUP_RANK", absl::StrCat(local.group_rank)},
      {"MASTER_ADDR", HostOf(leader)},
      {"JAX_COORDINATOR_ADDRESS", std::string(leader)},
      {"JAX_NUM_PROCESSES", absl::StrCat(ranked.size())},
      {"JAX_PROCESS_ID", absl::StrCat(rank)},
  };
  if (const std::optional<Address> address = ParseAddress(leader)) {
    variables["MASTER_PORT"] = absl::StrCat(address->port);
  }
  return variables;
}

}  // namespace muster::cluster
