// A queue of outgoing messages with its own sender thread, so that callers never block on a slow
// peer. The queue is unbounded.
#pragma once

#include <deque>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "train/wire/transport.h"

namespace muster::train::wire {

// States, all guarded by mutex_:
//
//    open ──Send() fails──> broken: queue dropped
//      └──────────┬───────────┘
//               closing (no new messages; the thread sends the rest) ──join──> stopped
//
class Outbox {
 public:
  // `connection` must outlive Close() or the destructor.
  explicit Outbox(Connection& connection);
  ~Outbox() { Close(); }
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // Enqueues a message. Thread-safe. After the stream has ended messages are dropped.
  void Post(Outgoing message);
  // Waits until all posted messages are sent or the stream has ended; then stops.
  void CloseAfterSending();
  // Cancels the stream, which unblocks its threads. Thread-safe; a no-op once stopped.
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
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;  // the connection may be destroyed
  std::jthread thread_;
};

}  // namespace muster::train::wire
