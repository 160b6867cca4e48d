#include "train/rendezvous.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "cluster/address.h"
#include "train/torch_status.h"
#include "train/waiting.h"

namespace muster::train {
namespace {

constexpr absl::Duration kReport = absl::Seconds(5);
constexpr absl::Duration kStaleTimeout = absl::Seconds(2);
constexpr char kAnnouncement[] = "rendezvous";

using StorePtr = c10::intrusive_ptr<c10d::Store>;

// Calls `done` until it says yes.
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

// A process has one name, and the leader answers to those that it has counted. So nobody takes what
// an earlier attempt has left for the others' presence.
//
//   others  here/<rank> = name      leader  all here?  ready = names by rank
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

  // True once all are here. The leader says so to the others.
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

// What earlier attempts left. Not before all are here: until then one of them may look at it.
void RemoveOthers(const std::string& folder, const std::string& mine) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    const bool is_old = absl::StartsWith(name, absl::StrCat(kAnnouncement, "-")) && name != mine;
    if (is_old) std::filesystem::remove(entry.path(), ignored);
  }
}

absl::StatusOr<StorePtr> LeadInFolder(const RendezvousOptions& options, Waiting& waiting) {
  const std::string id = RandomName();
  const std::string file = absl::StrCat(kAnnouncement, "-", id);
  const StorePtr store = c10::make_intrusive<c10d::FileStore>(
      JoinPath(options.folder, file), static_cast<int>(options.tasks.size()));
  Roll roll(options, store);
  MUSTER_RETURN_IF_ERROR(ReplaceFile(JoinPath(options.folder, kAnnouncement), id));
  MUSTER_RETURN_IF_ERROR(Poll(
      waiting, [&] { return roll.Complete(); }, [&] { return roll.Missing(); }));
  RemoveOthers(options.folder, file);
  return store;
}

// Follows the announcement of the leader, to the next when another attempt of it announces itself.
absl::StatusOr<StorePtr> FollowInFolder(const RendezvousOptions& options, Waiting& waiting) {
  const std::string announcement = JoinPath(options.folder, kAnnouncement);
  const auto announced = [&] { return ReadFile(announcement, 64).value_or(""); };
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
    // What fails here is a file that ended with the leader's earlier attempt.
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

bool CanConnect(const Address& address) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const std::string port = absl::StrCat(address.port);
  if (::getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found) != 0) return false;
  bool connected = false;
  for (const addrinfo* at = found; at != nullptr && !connected; at = at->ai_next) {
    const int fd = ::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, 0);
    connected = fd >= 0 && ::connect(fd, at->ai_addr, at->ai_addrlen) == 0;
    if (fd >= 0) ::close(fd);
  }
  ::freeaddrinfo(found);
  return connected;
}

absl::StatusOr<StorePtr> MeetOverTcp(const RendezvousOptions& options, Waiting& waiting) {
  const auto address = ParseAddress(options.addresses[0]);
  if (!address) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.addresses[0], ": an address must be host:port"));
  }
  if (options.rank != 0) {
    MUSTER_RETURN_IF_ERROR(Poll(
        waiting, [&] { return CanConnect(*address); },
        [&] {
          return absl::StrCat(options.tasks[0].ToString(), " (", options.addresses[0], ")");
        }));
  }
  c10d::TCPStoreOptions tcp;
  tcp.port = static_cast<uint16_t>(address->port);
  tcp.isServer = options.rank == 0;
  tcp.waitWorkers = false;
  tcp.timeout =
      absl::ToChronoMilliseconds(std::max(absl::Seconds(1), waiting.deadline() - absl::Now()));
  const StorePtr store = c10::make_intrusive<c10d::TCPStore>(address->host, tcp);
  Roll roll(options, store);
  MUSTER_RETURN_IF_ERROR(Poll(
      waiting, [&] { return roll.Complete(); }, [&] { return roll.Missing(); }));
  return store;
}

absl::StatusOr<StorePtr> MeetAt(const RendezvousOptions& options, Waiting& waiting) {
  if (options.folder.empty()) return MeetOverTcp(options, waiting);
  return options.rank == 0 ? LeadInFolder(options, waiting) : FollowInFolder(options, waiting);
}

}  // namespace

absl::StatusOr<Meeting> Meet(const RendezvousOptions& options) {
  Waiting waiting(options.timeout, kReport, options.log);
  absl::StatusOr<StorePtr> store = absl::UnknownError("");
  MUSTER_RETURN_IF_ERROR(CatchTorch([&] { store = MeetAt(options, waiting); }));
  if (absl::IsDeadlineExceeded(store.status())) {
    return InVain(options.timeout, store.status().message());
  }
  MUSTER_RETURN_IF_ERROR(store.status());
  Meeting meeting{.store = *store};
  const absl::Status connected = CatchTorch([&] {
    const auto self = ParseAddress(options.addresses[static_cast<size_t>(options.rank)]);
    auto gloo =
        c10d::ProcessGroupGloo::Options::create(absl::ToChronoMilliseconds(options.peer_timeout));
    gloo->devices.push_back(
        c10d::ProcessGroupGloo::createDeviceForHostname(self ? self->host : "127.0.0.1"));
    gloo->threads = 2;
    meeting.group = c10::make_intrusive<c10d::ProcessGroupGloo>(
        *store, options.rank, static_cast<int>(options.tasks.size()), gloo);
  });
  if (!connected.ok()) {
    return absl::UnavailableError(
        absl::StrCat("the tasks could not connect to each other: ", connected.message()));
  }
  return meeting;
}

}  // namespace muster::train
