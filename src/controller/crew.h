// Threads that lend a hand.
#pragma once

#include <functional>
#include <list>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace muster::controller {

// Work of several parts that may be done at once is shared with threads that have none.
// Thread-safe.
class Crew {
 public:
  explicit Crew(int threads);
  // Nobody may be sharing anything any more.
  ~Crew();

  // Calls `work` for each number below `count`, once, in the caller's thread and those that are
  // free: of the crew, and of other callers who wait for their last parts. Returns when all are
  // done.
  void Share(size_t count, const std::function<void(size_t)>& work);

 private:
  struct Batch {
    const size_t count;
    const std::function<void(size_t)>& work;
    size_t next = 0;
    size_t done = 0;
  };

  void Help();
  // Does one part of it; false when none is left.
  bool DoOne(Batch& batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  std::list<Batch*> batches_ ABSL_GUARDED_BY(mutex_);  // that have parts which nobody does
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::jthread> threads_;
};

}  // namespace muster::controller
