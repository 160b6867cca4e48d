#include "train/wire/outbox.h"

namespace muster::train::wire {

Outbox::Outbox(Connection& connection) : connection_(connection), thread_([this] { Run(); }) {}

void Outbox::Post(Outgoing message) {
  absl::MutexLock lock(&mutex_);
  if (!broken_ && !closing_) queue_.push_back(std::move(message));
}

void Outbox::Run() {
  for (;;) {
    Outgoing message;
    {
      absl::MutexLock lock(&mutex_, absl::Condition(this, &Outbox::HasWork));
      if (queue_.empty()) return;
      message = std::move(queue_.front());
      queue_.pop_front();
    }
    // Without the mutex: Send() blocks while the peer receives nothing, and Post() must not.
    if (connection_.Send(std::move(message))) continue;
    absl::MutexLock lock(&mutex_);
    broken_ = true;
    queue_.clear();
  }
}

void Outbox::CloseAfterSending() {
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
  }
  if (thread_.joinable()) thread_.join();
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
}

void Outbox::Abandon() {
  // Under the mutex: once stopped_ is set the connection may be destroyed.
  absl::MutexLock lock(&mutex_);
  if (!stopped_) connection_.Cancel();
}

void Outbox::Close() {
  if (!thread_.joinable()) return;
  // Unblocks Send() in the thread, which then drops its queue and can be joined.
  connection_.Cancel();
  CloseAfterSending();
}

}  // namespace muster::train::wire
