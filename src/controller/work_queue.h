// Keys of what is to be looked at, each by one worker at a time.
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

// A key that is added while it waits waits once; one that is added while it is being worked on
// comes again when that is done. Thread-safe.
class WorkQueue {
 public:
  struct Options {
    absl::Duration first_delay = absl::Milliseconds(5);  // after a failure; doubles
    absl::Duration max_delay = absl::Minutes(5);
  };
  explicit WorkQueue(Options options, const Clock* clock = &Clock::Real())
      : options_(options), clock_(*clock) {}

  // In the order in which they come.
  void Add(const std::string& key) { AddAfter(key, absl::ZeroDuration()); }
  // Not earlier; what asks for an earlier time wins.
  void AddAfter(const std::string& key, absl::Duration delay) {
    AddAt(key, clock_.Now() + std::max(delay, absl::ZeroDuration()));
  }
  // After a delay that grows each time, until Forget().
  void AddAfterFailure(const std::string& key);
  void Forget(const std::string& key);

  // The next one, which is worked on until Done(). Waits; nullopt after Close().
  std::optional<std::string> Take();
  void Done(const std::string& key);
  void Close();

  int size() const;  // of those that wait, whenever they are due

 private:
  // By this clock, which nobody sets.
  void AddAt(const std::string& key, absl::Time time);
  // When the next one is due.
  absl::Time Due() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const Clock& clock_;
  mutable absl::Mutex mutex_;
  absl::CondVar changed_;
  std::map<std::string, absl::Time> due_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<absl::Time, std::string>> order_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> taken_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, absl::Time> again_ ABSL_GUARDED_BY(mutex_);  // added while taken
  std::map<std::string, int> failures_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::controller
