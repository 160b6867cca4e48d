// The learning rate as a function of the step.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace muster::train {

// With W = warmup_steps and s the number of an update, counted from 1:
//
//   s <= W   base · s / W: the W-th update is the first at the full rate
//   s >  W   by type, with t = s - 1 - W, D = decay_steps, end = end_learning_rate:
//     constant      base
//     linear        linearly from base at t = 0 to end at t = D, then end
//     cosine        the same along half a cosine period
//     exponential   base · decay_rate ^ (t / D), never below end
//     step          base · decay_rate ^ floor(t / D), never below end
//
// Defaults: D is the rest of the job after W (required for step), decay_rate is 0.1, end is 0.
class Schedule {
 public:
  // Parses `schedule` of a job's train configuration; null means constant. Returns InvalidArgument
  // for a key that the type does not use.
  static absl::StatusOr<Schedule> FromJson(const nlohmann::json& schedule,
                                           double base_learning_rate, int64_t total_steps);

  // Returns the rate of update `step`, counted from 1.
  double LearningRate(int64_t step) const;

 private:
  enum class Type { kConstant, kLinear, kCosine, kExponential, kStep };

  Type type_ = Type::kConstant;
  double base_ = 0;
  double end_ = 0;
  double decay_rate_ = 1;
  int64_t warmup_steps_ = 0;
  int64_t decay_steps_ = 1;
};

}  // namespace muster::train
