// The first values of a job: from its newest checkpoint, or the model's initial values, optionally
// with tensors of another checkpoint (warm start).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "train/core/values.h"

namespace muster::train {

struct FirstValuesOptions {
  std::string model_dir;
  std::string warm_start;  // another model dir or checkpoint; "": none
  std::vector<Variable> variables;
  std::vector<std::string> slots;
  // The distribution of the data: the number of tasks, and the examples of each in a step.
  int world = 1;
  int64_t examples_per_step = 1;
  bool shared_steps = true;  // all tasks compute the same step
  std::function<void(const std::string&)> log;
  // Returns a variable's initial bytes.
  std::function<absl::Span<const std::byte>(int variable)> initial;
};

// Returns FailedPrecondition, naming the differences, if the model dir holds another model.
absl::StatusOr<std::unique_ptr<ValueSource>> ReadFirstValues(const FirstValuesOptions& options);

}  // namespace muster::train
