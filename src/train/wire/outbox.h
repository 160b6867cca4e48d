// Sends messages in a thread of its own, so that who has something to say never waits for a peer
// that is slow to listen.
#pragma once

#include <deque>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "train/wire/transport.h"

namespace muster::train::wire {

class Outbox {
 public:
  // `connection` must stay until Close() or the destructor has returned.
  explicit Outbox(Connection& connection);
  ~Outbox() { Close(); }
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // Any thread. After the stream has ended messages are dropped.
  void Post(Outgoing message);
  // Waits until everything posted was handed over, or the stream has ended; then stops.
  void CloseAfterSending();
  // Cancels the stream: whoever waits for it goes on. Any thread; nothing once it has stopped.
  void Abandon();
  // Cancels the stream and stops.
  void Close();

 private:
  void Run();
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closing_ || !queue_.empty(); }

  Connection& connection_;
  absl::Mutex mutex_;
  std::deque<Outgoing> queue_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;  // the connection may be gone
  std::jthread thread_;
};

}  // namespace muster::train::wire
