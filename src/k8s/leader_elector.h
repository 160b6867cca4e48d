// One of several processes leads: the one that holds a Lease.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "k8s/client.h"

namespace muster::k8s {

struct ElectionOptions {
  ObjectKey lease;
  std::string identity;  // of this process, unlike every other's
  // Others take over that long after the last renewal they saw; whole seconds.
  absl::Duration lease_duration = absl::Seconds(15);
  // Who could not renew for that long does not lead any more; less than lease_duration.
  absl::Duration renew_deadline = absl::Seconds(10);
  absl::Duration retry_period = absl::Seconds(2);
  // Told why it cannot be asked who leads, each reason once in a row.
  std::function<void(const std::string&)> on_error = {};
  const Clock* clock = &Clock::Real();
};

//            Step(): the lease is free, ours, or was not renewed in time
//   waiting ───────────────────────────────────────────────────────────> leading
//      ^                                                                   │
//      └───────────────────────────────────────────────────────────────────┘
//            Step(): it is another's · not renewed within renew_deadline · Release()
//
// Clocks of different machines are never compared: a lease counts from when this process saw it
// change. Step(), Run() and Release() belong to one thread; the others may be called by any.
class LeaderElector {
 public:
  // `client` must outlive it. It wants one of its own: renewals must not wait for other requests'
  // share of the rate limit.
  LeaderElector(Client& client, ElectionOptions options)
      : client_(client), options_(std::move(options)) {}

  // Waits to lead, calls `elected`, which must not block, and goes on renewing. When `stop` is
  // requested it renews until `is_idle` returns true, for the work of a leader may take a while to
  // end, gives the lease back and returns OK. Aborted when it does not lead any more: the caller
  // must end what only a leader may do, and best itself. While it waits, what time does not mend
  // ends it: a missing right, credentials or a server that are refused.
  absl::Status Run(
      const std::stop_token& stop, const std::function<void()>& elected,
      const std::function<bool()>& is_idle = [] { return true; });

  // Reads the lease, and takes or renews it. Whether this process leads now; an error when the
  // server could not be asked, which by itself does not end a leadership.
  absl::StatusOr<bool> Step(const std::stop_token& stop = {});
  // Gives the lease back, so that another one need not wait.
  void Release();

  // True only while no other can lead, even when renewing hangs.
  bool leading() const;
  // Who leads, as far as is known; "" when nobody does.
  std::string leader() const;

 private:
  // Waits until the work has ended, or until it is time to renew, and renews.
  absl::Status Drain(const std::function<bool()>& is_idle);
  absl::StatusOr<bool> Take(Json lease, const CallOptions& call);
  void Won(const Json& lease, absl::Time when);
  void Lost();
  // Notes when it was first seen as it is.
  void Observe(const Json& lease);
  bool IsHeldByAnother(const Json& lease) const;

  Client& client_;
  const ElectionOptions options_;
  Json seen_;  // the lease as it was last
  absl::Time seen_since_ = absl::InfinitePast();
  mutable absl::Mutex mutex_;
  absl::Time renewed_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::string leader_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::k8s
