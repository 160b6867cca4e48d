#include "controller/thread_pool.h"

namespace muster::controller {

ThreadPool::ThreadPool(int threads) {
  threads_.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { RunThread(); });
}

ThreadPool::~ThreadPool() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
}

void ThreadPool::ParallelFor(size_t count, const std::function<void(size_t)>& work) {
  Batch batch{.count = count, .work = work};
  absl::MutexLock lock(&mutex_);
  if (count > 1) batches_.push_back(&batch);
  while (RunOne(batch)) {
  }
  // The last parts run on other threads. Until they are done, this one runs parts of other batches.
  const auto wanted = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return batch.done == batch.count || !batches_.empty();
  };
  for (;;) {
    mutex_.Await(absl::Condition(&wanted));
    if (batch.done == batch.count) return;
    RunOne(*batches_.front());
  }
}

bool ThreadPool::RunOne(Batch& batch) {
  if (batch.next == batch.count) return false;
  const size_t part = batch.next++;
  if (batch.next == batch.count) batches_.remove(&batch);
  mutex_.Unlock();
  batch.work(part);
  mutex_.Lock();
  ++batch.done;  // the batch may be destroyed once its last part is counted and the lock released
  return true;
}

void ThreadPool::RunThread() {
  absl::MutexLock lock(&mutex_);
  for (;;) {
    const auto wanted = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return closed_ || !batches_.empty();
    };
    mutex_.Await(absl::Condition(&wanted));
    if (batches_.empty()) return;
    RunOne(*batches_.front());
  }
}

}  // namespace muster::controller
