#include "controller/crew.h"

namespace muster::controller {

Crew::Crew(int threads) {
  threads_.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Help(); });
}

Crew::~Crew() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
}

void Crew::Share(size_t count, const std::function<void(size_t)>& work) {
  Batch batch{.count = count, .work = work};
  absl::MutexLock lock(&mutex_);
  if (count > 1) batches_.push_back(&batch);
  while (DoOne(batch)) {
  }
  const auto wanted = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return batch.done == batch.count || !batches_.empty();
  };
  for (;;) {
    mutex_.Await(absl::Condition(&wanted));
    if (batch.done == batch.count) return;
    DoOne(*batches_.front());  // of others', while the last parts are with them
  }
}

bool Crew::DoOne(Batch& batch) {
  if (batch.next == batch.count) return false;
  const size_t part = batch.next++;
  if (batch.next == batch.count) batches_.remove(&batch);
  mutex_.Unlock();
  batch.work(part);
  mutex_.Lock();
  ++batch.done;
  return true;
}

void Crew::Help() {
  absl::MutexLock lock(&mutex_);
  for (;;) {
    const auto wanted = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return closed_ || !batches_.empty();
    };
    mutex_.Await(absl::Condition(&wanted));
    if (batches_.empty()) return;
    DoOne(*batches_.front());
  }
}

}  // namespace muster::controller
