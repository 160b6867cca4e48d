#include "controller/work_queue.h"

#include <algorithm>
#include <cmath>

namespace muster::controller {

void WorkQueue::AddAt(const std::string& key, absl::Time time) {
  absl::MutexLock lock(&mutex_);
  // One worker per key: a key in processing is queued again by Done().
  if (processing_.contains(key)) {
    const auto [later, is_new] = added_meanwhile_.try_emplace(key, time);
    later->second = std::min(later->second, time);
    return;
  }
  const auto [waiting, is_new] = due_.try_emplace(key, time);
  if (!is_new) {
    if (waiting->second <= time) return;
    order_.erase({waiting->second, key});
    waiting->second = time;
  }
  order_.emplace(time, key);
  changed_.Signal();
}

void WorkQueue::AddRateLimited(const std::string& key) {
  int failures = 0;
  {
    absl::MutexLock lock(&mutex_);
    failures = failures_[key]++;
  }
  const absl::Duration delay =
      std::min(options_.max_delay, options_.first_delay * std::exp2(std::min(failures, 40)));
  AddAfter(key, delay);
}

void WorkQueue::Forget(const std::string& key) {
  absl::MutexLock lock(&mutex_);
  failures_.erase(key);
}

absl::Time WorkQueue::Due() const {
  return order_.empty() ? absl::InfiniteFuture() : order_.begin()->first;
}

std::optional<std::string> WorkQueue::Get() {
  absl::MutexLock lock(&mutex_);
  for (;;) {
    if (closed_) return std::nullopt;
    const absl::Time due = Due();
    const absl::Time now = clock_.Now();
    if (due <= now) break;
    changed_.WaitWithTimeout(&mutex_, due - now);
  }
  std::string key = order_.begin()->second;
  order_.erase(order_.begin());
  due_.erase(key);
  processing_.insert(key);
  if (!order_.empty()) changed_.Signal();  // wake another worker: more keys may be due
  return key;
}

void WorkQueue::Done(const std::string& key) {
  std::optional<absl::Time> again;
  {
    absl::MutexLock lock(&mutex_);
    processing_.erase(key);
    if (const auto found = added_meanwhile_.find(key); found != added_meanwhile_.end()) {
      again = found->second;
      added_meanwhile_.erase(found);
    }
  }
  if (again) AddAt(key, *again);
}

void WorkQueue::ShutDown() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
  changed_.SignalAll();
}

int WorkQueue::size() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(due_.size());
}

}  // namespace muster::controller
