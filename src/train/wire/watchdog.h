// Cancels a stream at a deadline.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "absl/time/time.h"
#include "train/wire/transport.h"

namespace muster::train::wire {

class Watchdog {
 public:
  // `connection` must outlive this object.
  explicit Watchdog(Connection& connection);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Cancels the stream at `deadline` (of Clock::Real()), unless disarmed before.
  void Arm(absl::Time deadline);
  // Returns false if the stream was cancelled.
  bool Disarm();

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;
  static constexpr SteadyTime kNever = SteadyTime::max();

  void Run(const std::stop_token& stop);

  Connection& connection_;
  // Not absl::Mutex, whose timeouts use the wall clock: it may be set back while a call hangs.
  std::mutex mutex_;
  std::condition_variable_any changed_;
  SteadyTime deadline_ = kNever;  // guarded by mutex_, like expired_
  bool expired_ = false;
  std::jthread thread_;
};

}  // namespace muster::train::wire
