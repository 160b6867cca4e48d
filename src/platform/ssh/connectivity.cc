#include "platform/ssh/connectivity.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "cluster/address.h"
#include "platform/ssh/protocol.h"
#include "supervise/ports.h"

namespace muster::ssh {
namespace {

constexpr absl::Duration kReachTimeout = absl::Seconds(3);

struct Target {
  size_t peer;
  std::string address;
  std::string ports;  // that a firewall must allow
};

// Returns FailedPrecondition that lists the targets which `from` cannot reach.
absl::Status Reach(const Peer& from, const std::vector<Peer>& peers,
                   const std::vector<Target>& targets) {
  Json addresses = Json::array();
  for (const Target& target : targets) addresses.push_back(target.address);
  MUSTER_ASSIGN_OR_RETURN(
      const Json answer,
      from.session->Call({{"op", "reach"},
                          {"addresses", addresses},
                          {"timeout_ms", absl::ToInt64Milliseconds(kReachTimeout)}}));
  const Json results = answer.value("results", Json::array());
  std::vector<std::string> blocked;
  const std::string& name = from.session->host().name;
  for (size_t i = 0; results.is_array() && i < results.size() && i < targets.size(); ++i) {
    if (!results[i].is_string() || results[i].get<std::string>().empty()) continue;
    const std::string& other = peers[targets[i].peer].session->host().name;
    blocked.push_back(absl::StrCat(name, " cannot reach ", other, " at ", targets[i].address, " (",
                                   results[i].get<std::string>(), "): allow TCP from ", name,
                                   " through ", other, "'s firewall, ", targets[i].ports));
  }
  if (blocked.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrJoin(blocked, "\n"));
}

// Makes a host listen on a port that Muster might pick and on the ports fixed by the user.
absl::StatusOr<std::vector<Target>> Listen(const std::vector<Peer>& peers, size_t i) {
  MUSTER_ASSIGN_OR_RETURN(const Json answer,
                          peers[i].session->Call({{"op", "listen"}, {"ports", peers[i].ports}}));
  std::vector<Target> targets;
  for (const Json& listens : answer.value("ports", Json::array())) {
    const int port = listens.is_number_integer() ? listens.get<int>() : 0;
    targets.push_back({i, cluster::MakeAddress(peers[i].address, port),
                       targets.empty()
                           ? absl::StrCat("ports ", supervise::PortReservations::kFirstPort, " to ",
                                          supervise::PortReservations::kLastPort)
                           : absl::StrCat("port ", port)});
  }
  return targets;
}

}  // namespace

absl::Status ForEach(size_t count, const std::function<absl::Status(size_t)>& work,
                     size_t parallelism) {
  std::vector<absl::Status> results(count);
  // The threads join at the end of this block.
  {
    std::atomic<size_t> next = 0;
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < std::min(count, parallelism); ++i) {
      threads.emplace_back([&] {
        for (size_t mine = next++; mine < count; mine = next++) results[mine] = work(mine);
      });
    }
  }
  std::vector<std::string> messages;
  absl::StatusCode code = absl::StatusCode::kOk;
  for (const absl::Status& result : results) {
    if (result.ok()) continue;
    if (messages.empty()) code = result.code();
    messages.emplace_back(result.message());
  }
  return absl::Status(code, absl::StrJoin(messages, "\n"));
}

absl::Status CheckConnectivity(const std::vector<Peer>& peers) {
  if (peers.size() < 2) return absl::OkStatus();
  std::vector<std::vector<Target>> of_peer(peers.size());
  MUSTER_RETURN_IF_ERROR(ForEach(peers.size(), [&](size_t i) -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(of_peer[i], Listen(peers, i));
    return absl::OkStatus();
  }));
  std::vector<Target> targets;
  for (auto& of : of_peer) std::move(of.begin(), of.end(), std::back_inserter(targets));
  const absl::Status reached =
      ForEach(peers.size(), [&](size_t i) { return Reach(peers[i], peers, targets); });
  ForEach(peers.size(), [&](size_t i) {
    return peers[i].session->Call({{"op", "unlisten"}}).status();
  }).IgnoreError();
  return reached;
}

}  // namespace muster::ssh
