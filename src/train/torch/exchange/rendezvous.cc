#include "train/torch/exchange/rendezvous.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "cluster/address.h"
#include "train/core/waiting.h"
#include "train/torch/exchange/relayed_store.h"
#include "train/torch/torch_status.h"

namespace muster::train {
namespace {

constexpr absl::Duration kReportInterval = absl::Seconds(5);
// Bounds a get() on the file of an earlier attempt, for which no task will ever set the key.
constexpr absl::Duration kStaleTimeout = absl::Seconds(2);
constexpr char kAnnouncement[] = "rendezvous";

using StorePtr = c10::intrusive_ptr<c10d::Store>;

// Polls until `done` returns true.
absl::Status Poll(Waiting& waiting, const std::function<bool()>& done,
                  const std::function<std::string()>& missing) {
  while (!done()) MUSTER_RETURN_IF_ERROR(waiting.Pause(missing()));
  return absl::OkStatus();
}

std::string KeyOf(size_t rank) { return absl::StrCat("here/", rank); }

std::vector<uint8_t> Bytes(const std::string& text) { return {text.begin(), text.end()}; }

std::string Text(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

std::string RandomName() {
  std::random_device random;
  return absl::StrCat(absl::Hex(random(), absl::kZeroPad8), absl::Hex(random(), absl::kZeroPad8));
}

// The registration of the tasks. Each process has a random name, and the leader publishes the names
// that it has seen, so keys of an earlier attempt do not count as presence.
//
//   all     set here/<rank> = name
//   leader  once all are set: ready = names by rank
//   others  wait until `ready` contains their name
class Roll {
 public:
  Roll(const RendezvousOptions& options, StorePtr store)
      : options_(options), store_(std::move(store)), name_(RandomName()) {
    store_->set(KeyOf(static_cast<size_t>(options_.rank)), Bytes(name_));
  }

  std::string Missing() const {
    std::vector<std::string> missing;
    for (size_t rank = 0; rank < options_.tasks.size(); ++rank) {
      if (!store_->check({KeyOf(rank)})) missing.push_back(options_.tasks[rank].ToString());
    }
    if (missing.empty()) missing.push_back(options_.tasks[0].ToString());
    return absl::StrJoin(missing, ", ");
  }

  // Returns whether all tasks are present. The leader publishes that to the others.
  bool Complete() {
    if (options_.rank != 0) {
      if (!store_->check({kReady})) return false;
      const std::string ready = Text(store_->get(kReady));
      const std::vector<absl::string_view> names = absl::StrSplit(ready, ',');
      const auto rank = static_cast<size_t>(options_.rank);
      return rank < names.size() && names[rank] == name_;
    }
    std::vector<std::string> names;
    for (size_t rank = 0; rank < options_.tasks.size(); ++rank) {
      if (!store_->check({KeyOf(rank)})) return false;
      names.push_back(Text(store_->get(KeyOf(rank))));
    }
    store_->set(kReady, Bytes(absl::StrJoin(names, ",")));
    return true;
  }

 private:
  static constexpr char kReady[] = "ready";

  const RendezvousOptions& options_;
  const StorePtr store_;
  const std::string name_;
};

// Removes the files of earlier attempts. REQUIRES: the roll is complete; before that a task may
// still read them.
void RemoveOthers(const std::string& folder, const std::string& mine) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    const bool is_old = absl::StartsWith(name, absl::StrCat(kAnnouncement, "-")) && name != mine;
    if (is_old) std::filesystem::remove(entry.path(), ignored);
  }
}

absl::StatusOr<StorePtr> CreateFolderStore(const RendezvousOptions& options, Waiting& waiting) {
  const std::string id = RandomName();
  const std::string file = absl::StrCat(kAnnouncement, "-", id);
  const StorePtr store = c10::make_intrusive<c10d::FileStore>(
      base::JoinPath(options.folder, file), static_cast<int>(options.tasks.size()));
  Roll roll(options, store);
  // Announced after the leader has registered, so a task that finds the file also finds the leader.
  MUSTER_RETURN_IF_ERROR(base::ReplaceFile(base::JoinPath(options.folder, kAnnouncement), id));
  MUSTER_RETURN_IF_ERROR(Poll(
      waiting, [&] { return roll.Complete(); }, [&] { return roll.Missing(); }));
  RemoveOthers(options.folder, file);
  return store;
}

// Joins the store that the leader announces; moves on when a later attempt announces another.
absl::StatusOr<StorePtr> OpenFolderStore(const RendezvousOptions& options, Waiting& waiting) {
  const std::string announcement = base::JoinPath(options.folder, kAnnouncement);
  const auto announced = [&] { return base::ReadFile(announcement, 64).value_or(""); };
  const auto file_of = [&](const std::string& id) { return absl::StrCat(announcement, "-", id); };
  const auto leader = [&] { return options.tasks[0].ToString(); };
  for (;;) {
    std::string id;
    const auto found = [&] {
      id = announced();
      return !id.empty() && std::filesystem::exists(file_of(id));
    };
    MUSTER_RETURN_IF_ERROR(Poll(waiting, found, leader));
    const StorePtr store =
        c10::make_intrusive<c10d::FileStore>(file_of(id), static_cast<int>(options.tasks.size()));
    const auto timeout = store->getTimeout();
    store->setTimeout(absl::ToChronoMilliseconds(kStaleTimeout));
    bool complete = false;
    absl::Status met;
    // A failure means that the file belongs to an earlier attempt of the leader: try the next.
    const absl::Status looked = CatchTorch([&] {
      Roll roll(options, store);
      const auto done = [&] { return (complete = roll.Complete()) || announced() != id; };
      met = Poll(waiting, done, [&] { return roll.Missing(); });
    });
    MUSTER_RETURN_IF_ERROR(met);
    store->setTimeout(timeout);
    if (looked.ok() && complete) return store;
  }
}

bool Resolves(const std::string& host) {
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, nullptr, &found) != 0) return false;
  ::freeaddrinfo(found);
  return true;
}

// Listens at this task's address once its host name resolves: a cluster's DNS may lag behind.
absl::StatusOr<std::shared_ptr<CollectiveNode>> StartNode(const RendezvousOptions& options,
                                                          Waiting& waiting) {
  const std::string& self = options.addresses[static_cast<size_t>(options.rank)];
  const auto address = cluster::ParseAddress(self);
  if (!address) {
    return absl::InvalidArgumentError(absl::StrCat(self, ": the address must be host:port"));
  }
  MUSTER_RETURN_IF_ERROR(Poll(
      waiting, [&] { return Resolves(address->host); },
      [&] { return absl::StrCat("an address of ", address->host); }));
  MUSTER_ASSIGN_OR_RETURN(auto node,
                          CollectiveNode::Start(*options.transport, {.rank = options.rank,
                                                                     .tasks = options.tasks,
                                                                     .addresses = options.addresses,
                                                                     .hello = options.hello,
                                                                     .cluster = options.cluster,
                                                                     .log = options.log}));
  return node;
}

// Registers in the store of rank 0 and waits for the others. Retries if rank 0 was restarted, since
// its store is empty then.
absl::StatusOr<StorePtr> OpenNetworkStore(const RendezvousOptions& options, CollectiveNode& node,
                                          Waiting& waiting) {
  for (;;) {
    const auto values = node.OpenStore(wire::kConnectAttemptTimeout);
    if (!values.ok()) {
      const absl::Status& status = values.status();
      if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) return status;
      MUSTER_RETURN_IF_ERROR(waiting.Pause(absl::StrCat(
          options.tasks[0].ToString(), " (", options.addresses[0], ": ", status.message(), ")")));
      continue;
    }
    const StorePtr store = NewRelayedStore(*values, node.relay(), options.rank);
    absl::Status met;
    const absl::Status called = CatchTorch([&] {
      Roll roll(options, store);
      met = Poll(
          waiting, [&] { return roll.Complete(); }, [&] { return roll.Missing(); });
    });
    MUSTER_RETURN_IF_ERROR(met);
    if (called.ok()) return store;
    MUSTER_RETURN_IF_ERROR(waiting.Pause(options.tasks[0].ToString()));
  }
}

absl::StatusOr<RendezvousResult> FindPeers(const RendezvousOptions& options, Waiting& waiting) {
  RendezvousResult result;
  if (!options.folder.empty()) {
    MUSTER_ASSIGN_OR_RETURN(result.store, options.rank == 0 ? CreateFolderStore(options, waiting)
                                                            : OpenFolderStore(options, waiting));
    return result;
  }
  MUSTER_ASSIGN_OR_RETURN(result.node, StartNode(options, waiting));
  MUSTER_ASSIGN_OR_RETURN(result.store, OpenNetworkStore(options, *result.node, waiting));
  return result;
}

// Returns a loopback address: Gloo never leaves this machine, the relay reaches the others.
std::string GlooHost(const RendezvousOptions& options) {
  if (!options.folder.empty()) return "127.0.0.1";
  char text[INET_ADDRSTRLEN] = {};
  const in_addr address = LoopbackOf(options.rank);
  ::inet_ntop(AF_INET, &address, text, sizeof(text));
  return text;
}

}  // namespace

absl::StatusOr<RendezvousResult> Rendezvous(const RendezvousOptions& options) {
  Waiting waiting(options.timeout, kReportInterval, options.log);
  absl::StatusOr<RendezvousResult> result = absl::UnknownError("");
  MUSTER_RETURN_IF_ERROR(CatchTorch([&] { result = FindPeers(options, waiting); }));
  if (absl::IsDeadlineExceeded(result.status())) {
    return TimedOut(options.timeout, result.status().message());
  }
  MUSTER_RETURN_IF_ERROR(result.status());
  const absl::Status connected = CatchTorch([&] {
    auto gloo =
        c10d::ProcessGroupGloo::Options::create(absl::ToChronoMilliseconds(options.peer_timeout));
    gloo->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(GlooHost(options)));
    gloo->threads = 2;
    result->group = c10::make_intrusive<c10d::ProcessGroupGloo>(
        result->store, options.rank, static_cast<int>(options.tasks.size()), gloo);
  });
  if (!connected.ok()) {
    return absl::UnavailableError(
        absl::StrCat("cannot connect the tasks to each other: ", connected.message()));
  }
  return result;
}

}  // namespace muster::train
