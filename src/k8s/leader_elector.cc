#include "k8s/leader_elector.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "k8s/error.h"
#include "k8s/rate_limit.h"

namespace muster::k8s {
namespace {

constexpr int64_t kMaxLeaseSeconds = 3600;
constexpr absl::Duration kReleaseTimeout = absl::Seconds(5);
constexpr absl::Duration kIdlePoll = absl::Milliseconds(20);

int64_t WholeSeconds(absl::Duration duration) {
  return std::clamp<int64_t>(absl::ToInt64Seconds(duration), 1, kMaxLeaseSeconds);
}

std::string HolderOf(const Json& lease) { return TextAt(lease, "/spec/holderIdentity"); }

int64_t NumberAt(const Json& lease, absl::string_view path, int64_t otherwise) {
  const Json* found = Find(lease, path);
  return found != nullptr && found->is_number_integer() ? found->get<int64_t>() : otherwise;
}

bool IsPermanent(const absl::Status& status) {
  return IsForbidden(status) || absl::IsUnauthenticated(status) ||
         absl::IsFailedPrecondition(status);
}

}  // namespace

bool LeaderElector::leading() const {
  absl::MutexLock lock(&mutex_);
  return options_.clock->Now() < renewed_ + options_.renew_deadline;
}

std::string LeaderElector::leader() const {
  absl::MutexLock lock(&mutex_);
  return leader_;
}

void LeaderElector::RecordRenewal(const Json& lease, absl::Time when) {
  Observe(lease);
  absl::MutexLock lock(&mutex_);
  renewed_ = when;
}

void LeaderElector::EndLeadership() {
  absl::MutexLock lock(&mutex_);
  renewed_ = absl::InfinitePast();
}

void LeaderElector::Observe(const Json& lease) {
  if (ResourceVersionOf(lease) != ResourceVersionOf(observed_lease_) ||
      UidOf(lease) != UidOf(observed_lease_)) {
    observed_at_ = options_.clock->Now();
  }
  observed_lease_ = lease;
  absl::MutexLock lock(&mutex_);
  leader_ = HolderOf(lease);
}

bool LeaderElector::IsHeldByAnother(const Json& lease) const {
  const std::string holder = HolderOf(lease);
  if (holder.empty() || holder == options_.identity) return false;
  const int64_t seconds = std::clamp<int64_t>(
      NumberAt(lease, "/spec/leaseDurationSeconds", WholeSeconds(options_.lease_duration)), 1,
      kMaxLeaseSeconds);
  return options_.clock->Now() < observed_at_ + absl::Seconds(seconds);
}

absl::StatusOr<bool> LeaderElector::Step(const std::stop_token& stop) {
  absl::Time until;
  {
    absl::MutexLock lock(&mutex_);
    // A request that would end after the leadership is useless, so the leader's remaining time
    // limits it. A process that does not lead gets half of renew_deadline.
    until = std::max(renewed_, options_.clock->Now() - options_.renew_deadline / 2) +
            options_.renew_deadline;
  }
  const CallOptions call{.timeout = std::max(until - options_.clock->Now(), absl::Seconds(1)),
                         .stop = stop};
  auto lease = client_.Get(kLeases, options_.lease, call);
  if (IsNoSuchObject(lease.status())) {
    Json fresh = {{"apiVersion", kLeases.ApiVersion()},
                  {"kind", "Lease"},
                  {"metadata", {{"name", options_.lease.name}}},
                  {"spec", Json::object()}};
    if (!options_.lease.ns.empty()) {
      fresh["metadata"]["namespace"] = options_.lease.ns;
    }
    return Acquire(std::move(fresh), call);
  }
  if (!lease.ok()) return lease.status();
  Observe(*lease);
  if (IsHeldByAnother(*lease)) {
    EndLeadership();
    return false;
  }
  return Acquire(*std::move(lease), call);
}

absl::StatusOr<bool> LeaderElector::Acquire(Json lease, const CallOptions& call) {
  // Taken before the request: others count the lease from a later time.
  const absl::Time now = options_.clock->Now();
  const bool renews = HolderOf(lease) == options_.identity;
  Json& spec = lease["spec"];
  if (!spec.is_object()) spec = Json::object();
  spec["holderIdentity"] = options_.identity;
  spec["leaseDurationSeconds"] = WholeSeconds(options_.lease_duration);
  spec["renewTime"] = MicroTimestamp(now);
  if (!renews) {
    spec["acquireTime"] = MicroTimestamp(now);
    spec["leaseTransitions"] = NumberAt(lease, "/spec/leaseTransitions", -1) + 1;
  }
  // Compare-and-swap: the update has the resourceVersion that was read, so of two processes that
  // find the lease expired only one succeeds.
  const bool exists = !ResourceVersionOf(lease).empty();
  const auto written =
      exists ? client_.Update(kLeases, lease, call) : client_.Create(kLeases, lease, call);
  if (written.ok()) {
    RecordRenewal(*written, now);
    return true;
  }
  // Another process was faster. The next step observes its lease.
  if (IsConflict(written.status()) || IsExistingObject(written.status())) return leading();
  return written.status();
}

void LeaderElector::Release() {
  if (!leading()) return;
  EndLeadership();
  // As client-go does: no holder, and a duration that expires at once even for a process that
  // ignores the empty holder.
  Json lease = observed_lease_;
  lease["spec"]["holderIdentity"] = "";
  lease["spec"]["leaseDurationSeconds"] = 1;
  lease["spec"]["renewTime"] = MicroTimestamp(options_.clock->Now());
  const auto written = client_.Update(kLeases, lease, {.timeout = kReleaseTimeout});
  if (written.ok()) Observe(*written);
}

absl::Status LeaderElector::Drain(const std::function<bool()>& is_idle) {
  const absl::Time renewal = options_.clock->Now() + options_.retry_period;
  while (!is_idle()) {
    if (options_.clock->Now() >= renewal) return Step().status();
    absl::SleepFor(kIdlePoll);
  }
  return absl::OkStatus();
}

absl::Status LeaderElector::Run(const std::stop_token& stop, const std::function<void()>& elected,
                                const std::function<bool()>& is_idle) {
  std::minstd_rand random(std::random_device{}());
  // Waiting processes retry at different times.
  std::uniform_real_distribution<double> jitter(1, 2);
  absl::Status last;
  for (;;) {
    const auto step = Step(stop);
    if (step.value_or(false)) break;
    if (stop.stop_requested()) return absl::OkStatus();
    if (IsPermanent(step.status())) return step.status();
    const bool is_new = step.status() != std::exchange(last, step.status());
    if (is_new && !last.ok() && options_.on_error) options_.on_error(std::string(last.message()));
    if (!SleepUnlessStopped(options_.retry_period * jitter(random), stop)) return absl::OkStatus();
  }
  elected();
  while (leading()) {
    if (SleepUnlessStopped(options_.retry_period, stop)) {
      last = Step(stop).status();
    } else if (is_idle()) {
      Release();
      return absl::OkStatus();
    } else {
      last = Drain(is_idle);
    }
  }
  if (stop.stop_requested() && is_idle()) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrCat(options_.identity, " lost the leader election",
                   last.ok() ? absl::StrCat(" to '", leader(), "'")
                             : absl::StrCat(": cannot renew the lease in time: ", last.message())));
}

}  // namespace muster::k8s
