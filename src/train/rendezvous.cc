#include "train/rendezvous.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "cluster/address.h"
#include "train/torch_status.h"

namespace muster::train {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(20);
constexpr absl::Duration kReport = absl::Seconds(10);
constexpr absl::Duration kCollectiveTimeout = absl::Minutes(10);

using StorePtr = c10::intrusive_ptr<c10d::Store>;

// Calls `done` until it says yes. Says every now and then for what it waits.
absl::Status Poll(const RendezvousOptions& options, absl::Time deadline,
                  const std::function<bool()>& done, const std::function<std::string()>& missing) {
  absl::Time report_at = absl::Now() + kReport;
  while (!done()) {
    if (absl::Now() > deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          "waited ", absl::FormatDuration(options.timeout), " in vain for ", missing()));
    }
    if (absl::Now() > report_at) {
      report_at = absl::Now() + kReport;
      options.log(absl::StrCat("waiting for ", missing()));
    }
    absl::SleepFor(kPoll);
  }
  return absl::OkStatus();
}

// Rank 0 names the file after itself, so that one of an earlier attempt is not taken for it.
absl::StatusOr<StorePtr> FileRendezvous(const RendezvousOptions& options, absl::Time deadline) {
  const std::string announcement = JoinPath(options.folder, "rendezvous");
  pid_t leader = ::getpid();
  if (options.rank == 0) {
    MUSTER_RETURN_IF_ERROR(ReplaceFile(announcement, absl::StrCat(leader)));
  } else {
    const auto found = [&] {
      const auto text = ReadFile(announcement, 32);
      return text.ok() && absl::SimpleAtoi(*text, &leader) && ::kill(leader, 0) == 0;
    };
    MUSTER_RETURN_IF_ERROR(
        Poll(options, deadline, found, [&] { return options.tasks[0].ToString(); }));
  }
  return StorePtr(c10::make_intrusive<c10d::FileStore>(absl::StrCat(announcement, "-", leader),
                                                       static_cast<int>(options.tasks.size())));
}

absl::StatusOr<StorePtr> TcpRendezvous(const RendezvousOptions& options, absl::Time deadline) {
  const auto address = ParseAddress(options.addresses[0]);
  if (!address) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.addresses[0], ": an address must be host:port"));
  }
  c10d::TCPStoreOptions store;
  store.port = static_cast<uint16_t>(address->port);
  store.isServer = options.rank == 0;
  store.waitWorkers = false;
  store.timeout = absl::ToChronoMilliseconds(deadline - absl::Now());
  return StorePtr(c10::make_intrusive<c10d::TCPStore>(address->host, store));
}

absl::Status AwaitAll(const RendezvousOptions& options, c10d::Store& store, absl::Time deadline) {
  const auto key = [](size_t rank) { return absl::StrCat("here/", rank); };
  store.set(key(static_cast<size_t>(options.rank)), std::vector<uint8_t>{1});
  std::vector<std::string> missing;
  const auto all_here = [&] {
    missing.clear();
    for (size_t rank = 0; rank < options.tasks.size(); ++rank) {
      if (!store.check({key(rank)})) missing.push_back(options.tasks[rank].ToString());
    }
    return missing.empty();
  };
  return Poll(options, deadline, all_here, [&] { return absl::StrJoin(missing, ", "); });
}

}  // namespace

absl::StatusOr<c10::intrusive_ptr<c10d::ProcessGroup>> Meet(const RendezvousOptions& options) {
  const absl::Time deadline = absl::Now() + options.timeout;
  absl::StatusOr<StorePtr> store = absl::UnknownError("");
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  absl::Status met;
  MUSTER_RETURN_IF_ERROR(CatchTorch([&] {
    store = options.folder.empty() ? TcpRendezvous(options, deadline)
                                   : FileRendezvous(options, deadline);
    met = store.status();
    if (met.ok()) met = AwaitAll(options, **store, deadline);
    if (!met.ok()) return;
    const auto self = ParseAddress(options.addresses[static_cast<size_t>(options.rank)]);
    auto gloo =
        c10d::ProcessGroupGloo::Options::create(absl::ToChronoMilliseconds(kCollectiveTimeout));
    gloo->devices.push_back(
        c10d::ProcessGroupGloo::createDeviceForHostname(self ? self->host : "127.0.0.1"));
    gloo->threads = 2;
    group = c10::make_intrusive<c10d::ProcessGroupGloo>(
        *store, options.rank, static_cast<int>(options.tasks.size()), gloo);
  }));
  MUSTER_RETURN_IF_ERROR(met);
  return group;
}

}  // namespace muster::train
