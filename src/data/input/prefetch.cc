// slots_[i] is the batch with the number next_ + i. A worker appends an empty slot, which claims
// the number, makes the batch without the mutex and fills the slot; Next() takes the front once it
// is filled. So batches are returned in order, whichever worker is first.
#include "data/input/prefetch.h"

#include <exception>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster::data {

Prefetcher::Prefetcher(Make make, int depth, int threads)
    : make_(std::move(make)), depth_(static_cast<size_t>(depth)) {
  if (depth_ == 0) return;
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

Prefetcher::~Prefetcher() {
  absl::MutexLock lock(&mutex_);
  stopping_ = true;
  // The threads join in their destructors, after the lock is released.
}

absl::StatusOr<Batch> Prefetcher::MakeSafely(int64_t sequence) const {
  try {
    return make_(sequence);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        "not enough memory for a batch; choose a smaller 'batch_size' or 'prefetch'");
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("batch ", sequence, ": ", error.what()));
  }
}

bool Prefetcher::HasRoom() const { return stopping_ || slots_.size() < depth_; }

bool Prefetcher::FrontIsReady() const { return !slots_.empty() && slots_.front().has_value(); }

void Prefetcher::Work() {
  absl::MutexLock lock(&mutex_);
  for (;;) {
    mutex_.Await(absl::Condition(this, &Prefetcher::HasRoom));
    if (stopping_) return;
    const int64_t generation = generation_;
    const int64_t sequence = next_ + static_cast<int64_t>(slots_.size());
    slots_.emplace_back();
    mutex_.Unlock();
    absl::StatusOr<Batch> batch = MakeSafely(sequence);
    mutex_.Lock();
    // A Seek() has cleared the slots meanwhile: the batch is dropped.
    if (generation != generation_) continue;
    // Next() removes a slot only when it is ready, so ours is still there.
    slots_[static_cast<size_t>(sequence - next_)] = std::move(batch);
  }
}

absl::StatusOr<Batch> Prefetcher::Next() {
  absl::MutexLock lock(&mutex_);
  if (depth_ == 0) {
    if (slots_.empty()) slots_.emplace_back(MakeSafely(next_));
  } else {
    mutex_.Await(absl::Condition(this, &Prefetcher::FrontIsReady));
  }
  // The slot stays, so that later calls return the same error.
  if (!slots_.front()->ok()) return slots_.front()->status();
  absl::StatusOr<Batch> batch = *std::move(slots_.front());
  slots_.pop_front();
  ++next_;
  return batch;
}

absl::Status Prefetcher::Seek(int64_t sequence) {
  if (sequence < 0) {
    return absl::InvalidArgumentError(absl::StrCat("invalid batch number ", sequence));
  }
  absl::MutexLock lock(&mutex_);
  slots_.clear();
  next_ = sequence;
  ++generation_;
  return absl::OkStatus();
}

}  // namespace muster::data
