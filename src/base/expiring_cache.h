// Caches a value that expires, such as an access token.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace muster::base {

// Caches a value and fetches a new one shortly before it expires. T has a member `expires` and is
// equality-comparable. Thread-safe; one thread fetches while the others wait for it.
template <typename T>
class ExpiringCache {
 public:
  // `fetch` is called from `refresh_before` before the expiry on. `clock` must outlive the cache.
  ExpiringCache(std::function<absl::StatusOr<T>()> fetch, absl::Duration refresh_before,
                const Clock& clock)
      : fetch_(std::move(fetch)), refresh_before_(refresh_before), clock_(clock) {}

  // Returns a valid value. When the fetch fails, returns the cached value while it has not expired,
  // else the error of the fetch.
  absl::StatusOr<T> Get() {
    absl::MutexLock lock(&mutex_);
    if (cached_.has_value() && cached_->expires - refresh_before_ > clock_.Now()) return *cached_;
    absl::StatusOr<T> fetched = fetch_();
    if (fetched.ok()) cached_ = *fetched;
    const bool valid = cached_.has_value() && cached_->expires > clock_.Now();
    return !fetched.ok() && valid ? *cached_ : fetched;
  }

  // Drops the cached value if it is still `refused`, which a server has rejected. A value that
  // another thread has fetched since then stays.
  void Forget(const T& refused) {
    absl::MutexLock lock(&mutex_);
    if (cached_ == refused) cached_.reset();
  }

 private:
  const std::function<absl::StatusOr<T>()> fetch_;
  const absl::Duration refresh_before_;
  const Clock& clock_;
  absl::Mutex mutex_;
  std::optional<T> cached_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::base
