// Elects a leader among several processes: the holder of a Lease.
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
  std::string identity;  // unique to this process
  // Others take over this long after the last renewal that they observed. Whole seconds.
  absl::Duration lease_duration = absl::Seconds(15);
  // A leader steps down if it could not renew for this long. Less than lease_duration.
  absl::Duration renew_deadline = absl::Seconds(10);
  absl::Duration retry_period = absl::Seconds(2);
  // Called with errors of the lease requests; an error that repeats is reported once.
  std::function<void(const std::string&)> on_error = {};
  const base::Clock* clock = &base::Clock::Real();
};

//            Step(): the lease is free, ours, or was not renewed in time
//   waiting ───────────────────────────────────────────────────────────> leading
//      ^                                                                   │
//      └───────────────────────────────────────────────────────────────────┘
//            Step(): another holds it · not renewed within renew_deadline · Release()
//
// Clocks of different machines are never compared: the duration of a lease counts from when this
// process observed its last change. Step(), Run() and Release() must be called by one thread; the
// other methods are thread-safe.
class LeaderElector {
 public:
  // `client` outlives the elector. It should not be shared: other requests would delay renewals by
  // using up its rate limit.
  LeaderElector(Client& client, ElectionOptions options)
      : client_(client), options_(std::move(options)) {}

  // Blocks until it holds the lease, calls `elected`, which must not block, and keeps renewing.
  // When `stop` is requested, it renews until `is_idle` returns true, so that the work of the
  // leader can finish, releases the lease and returns OK. Returns Aborted if it has lost the lease:
  // the caller must stop all work of a leader, preferably by exiting. While it waits, it returns
  // errors that a retry does not fix: a missing permission, rejected credentials, an untrusted
  // server.
  absl::Status Run(
      const std::stop_token& stop, const std::function<void()>& elected,
      const std::function<bool()>& is_idle = [] { return true; });

  // Reads the lease, and acquires or renews it. Returns whether this process leads now. An error of
  // the request by itself does not end the leadership.
  absl::StatusOr<bool> Step(const std::stop_token& stop = {});
  // Releases the lease, so that another process can acquire it immediately.
  void Release();

  // True only while no other process can lead, even if a renewal hangs.
  bool leading() const;
  // Returns the identity of the last known leader, or "".
  std::string leader() const;

 private:
  // Waits until is_idle() or until a renewal is due, and renews.
  absl::Status Drain(const std::function<bool()>& is_idle);
  absl::StatusOr<bool> Acquire(Json lease, const CallOptions& call);
  void RecordRenewal(const Json& lease, absl::Time when);
  void EndLeadership();
  // Records the lease, and the time if it has changed.
  void Observe(const Json& lease);
  bool IsHeldByAnother(const Json& lease) const;

  Client& client_;
  const ElectionOptions options_;
  Json observed_lease_;  // the last version
  absl::Time observed_at_ = absl::InfinitePast();
  mutable absl::Mutex mutex_;
  absl::Time renewed_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::string leader_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::k8s
