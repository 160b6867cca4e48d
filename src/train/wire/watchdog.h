// Ends a stream that does not answer in time.
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
  // `connection` must stay longer.
  explicit Watchdog(Connection& connection);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Cancels the stream at `deadline` (of Clock::Real()), unless disarmed before.
  void Arm(absl::Time deadline);
  // False when the stream was cancelled.
  bool Disarm();

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;
  static constexpr SteadyTime kNever = SteadyTime::max();

  void Run(const std::stop_token& stop);

  Connection& connection_;
  // Not absl's: those time out by the wall clock, which may be set back while a call hangs.
  std::mutex mutex_;
  std::condition_variable_any changed_;
  SteadyTime deadline_ = kNever;  // guarded by mutex_, as the next one
  bool expired_ = false;
  std::jthread thread_;
};

}  // namespace muster::train::wire
