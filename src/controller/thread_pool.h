// Threads that run the parts of parallel work.
#pragma once

#include <functional>
#include <list>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace muster::controller {

// Thread-safe.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  // REQUIRES: no ParallelFor() is running.
  ~ThreadPool();

  // Calls work(i) once for each i < `count` and returns when all calls have returned. The calls run
  // on the caller's thread and on idle ones: threads of the pool, and other callers that wait for
  // their last parts. `work` must not throw.
  void ParallelFor(size_t count, const std::function<void(size_t)>& work);

 private:
  // One call of ParallelFor(), on its stack.
  struct Batch {
    const size_t count;
    const std::function<void(size_t)>& work;
    size_t next = 0;  // first part that has not begun
    size_t done = 0;
  };

  void RunThread();
  // Runs one part of the batch, without the lock. Returns false if all parts have begun.
  bool RunOne(Batch& batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  std::list<Batch*> batches_ ABSL_GUARDED_BY(mutex_);  // those with parts that have not begun
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::jthread> threads_;
};

}  // namespace muster::controller
