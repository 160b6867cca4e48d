#include "train/ps/members.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace muster::train {
namespace {

// Cancelling a stream takes effect within milliseconds, unless its thread is in an update.
constexpr absl::Duration kReplaceTimeout = absl::Seconds(10);

}  // namespace

absl::Status Members::Join(int rank, const wire::Peer& peer, std::shared_ptr<wire::Outbox> outbox) {
  const absl::Time deadline = base::Clock::Real().Now() + kReplaceTimeout;
  absl::MutexLock lock(&mutex_);
  Entry& entry = entries_[rank];
  while (entry.outbox != nullptr) {
    const bool other = entry.peer.incarnation() != peer.incarnation();
    if (other && peer.attempt() <= entry.peer.attempt()) {
      return absl::AlreadyExistsError(
          absl::StrCat(tasks_[rank].ToString(), " is taken by ", entry.peer.process(),
                       "; stop one of the two tasks or give it another index"));
    }
    // The cancelled stream's own thread calls Leave().
    entry.outbox->Abandon();
    const auto left = [&entry, earlier = entry.outbox] { return entry.outbox != earlier; };
    if (!mutex_.AwaitWithTimeout(absl::Condition(&left), deadline - base::Clock::Real().Now())) {
      return absl::UnavailableError(
          absl::StrCat("the earlier stream of ", tasks_[rank].ToString(), " does not end"));
    }
  }
  entry = {peer, std::move(outbox)};
  return absl::OkStatus();
}

// The stream may have been disconnected and the rank taken by another one since.
void Members::Leave(int rank, const wire::Outbox* outbox) {
  absl::MutexLock lock(&mutex_);
  Entry& entry = entries_[rank];
  if (entry.outbox.get() == outbox) entry.outbox.reset();
}

void Members::Send(int rank, wire::Outgoing message) {
  std::shared_ptr<wire::Outbox> outbox;
  {
    absl::MutexLock lock(&mutex_);
    // The copy keeps the outbox alive if the task leaves meanwhile. Post() is called without the
    // mutex.
    outbox = entries_[rank].outbox;
  }
  if (outbox != nullptr) outbox->Post(std::move(message));
}

void Members::SendToAll(const wire::Frame& frame) {
  for (int rank = 0; rank < size(); ++rank) Send(rank, {frame});
}

void Members::Disconnect() {
  std::vector<std::shared_ptr<wire::Outbox>> open;
  {
    absl::MutexLock lock(&mutex_);
    for (Entry& entry : entries_) open.push_back(std::exchange(entry.outbox, nullptr));
  }
  // Outside of the mutex: the streams' threads call Leave() and take it.
  for (const auto& outbox : open) {
    if (outbox != nullptr) outbox->Abandon();
  }
}

bool Members::IsConnected(int rank) const {
  absl::MutexLock lock(&mutex_);
  return entries_[rank].outbox != nullptr;
}

int Members::connected() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(std::count_if(entries_.begin(), entries_.end(), [](const Entry& entry) {
    return entry.outbox != nullptr;
  }));
}

}  // namespace muster::train
