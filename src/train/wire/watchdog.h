// Ends a stream that does not answer in time.
#pragma once

#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "train/wire/transport.h"

namespace muster::train::wire {

class Watchdog {
 public:
  // `connection` must stay longer.
  explicit Watchdog(Connection& connection);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Cancels the stream at `deadline`, unless disarmed before.
  void Arm(absl::Time deadline);
  // False when the stream was cancelled.
  bool Disarm();

 private:
  void Run(const std::stop_token& stop);

  Connection& connection_;
  absl::Mutex mutex_;
  absl::CondVar changed_;
  absl::Time deadline_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  bool expired_ ABSL_GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

}  // namespace muster::train::wire
