// A queue of keys to reconcile, each by one worker at a time.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace muster::controller {

// A key is queued at most once. A key that is added while a worker processes it is queued again
// after Done(). The names are those of client-go's workqueue. Thread-safe.
//
//           Add()           Get()               Done()
//   absent ───────> queued ───────> processing ────────> absent, or queued if added meanwhile
class WorkQueue {
 public:
  struct Options {
    absl::Duration first_delay = absl::Milliseconds(5);  // after a failure; doubles
    absl::Duration max_delay = absl::Minutes(5);
  };
  explicit WorkQueue(Options options, const base::Clock* clock = &base::Clock::Real())
      : options_(options), clock_(*clock) {}

  // Keys are processed in the order in which they were added.
  void Add(const std::string& key) { AddAfter(key, absl::ZeroDuration()); }
  // Adds the key once `delay` has passed. The earliest of several times wins.
  void AddAfter(const std::string& key, absl::Duration delay) {
    AddAt(key, clock_.Now() + std::max(delay, absl::ZeroDuration()));
  }
  // Adds the key after a delay that doubles with each call until Forget().
  void AddRateLimited(const std::string& key);
  void Forget(const std::string& key);

  // Blocks until a key is due and returns it, or nullopt after ShutDown(). The caller must call
  // Done() when it has processed the key.
  std::optional<std::string> Get();
  void Done(const std::string& key);
  void ShutDown();

  int size() const;  // queued keys, due or not

 private:
  // `time` is of clock_, which is monotonic.
  void AddAt(const std::string& key, absl::Time time);
  // Returns when the next key is due.
  absl::Time Due() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const base::Clock& clock_;
  mutable absl::Mutex mutex_;
  absl::CondVar changed_;
  std::map<std::string, absl::Time> due_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<absl::Time, std::string>> order_ ABSL_GUARDED_BY(mutex_);  // due_, sorted
  std::set<std::string> processing_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, absl::Time> added_meanwhile_ ABSL_GUARDED_BY(mutex_);  // while processing
  std::map<std::string, int> failures_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::controller
