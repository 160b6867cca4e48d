// Rejects losses and gradients that are not finite (`nan_guard` of a job).
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "train/torch/exchange/replica.h"

namespace muster::train {

// Not thread-safe.
class FiniteGuard {
 public:
  // `mode`: stop, skip or off. `at` returns the task and the step, for messages.
  FiniteGuard(std::string mode, std::function<std::string()> at,
              std::function<void(const std::string&)> log);

  bool may_skip() const { return mode_ == "skip"; }

  // Begins the next step.
  void BeginStep() { bad_gradient_.clear(); }
  // Sets `skipped` if the step has no gradient because of its loss. Returns FailedPrecondition if
  // training must stop.
  absl::Status CheckLoss(double loss, bool& skipped);
  // Returns whether the gradient of a parameter may be sent. Replaces a bad one by zeros in mode
  // `skip`; in mode `stop`, none is sent and CheckGradients() fails.
  bool CheckGradient(int parameter, Replica& replica);
  // Returns FailedPrecondition if training must stop because of a gradient of this step.
  absl::Status CheckGradients() const;

 private:
  const std::string mode_;
  const std::function<std::string()> at_;
  const std::function<void(const std::string&)> log_;
  std::string bad_gradient_;  // the first parameter whose gradient is not finite
};

}  // namespace muster::train
