// Where a job's values come from when it begins: a checkpoint of its own, or the model as it is
// made, with what another checkpoint lends it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "train/values.h"

namespace muster::train {

struct FirstValuesOptions {
  std::string model_dir;
  std::string warm_start;  // another model dir or checkpoint; "" = none
  std::vector<Variable> variables;
  std::vector<std::string> slots;
  // How the data is dealt out: tasks, and examples of each in a step.
  int world = 1;
  int64_t examples_per_step = 1;
  bool shared_steps = true;  // all tasks are at the same batch
  std::function<void(const std::string&)> log;
  // A variable's bytes as the model was made.
  std::function<absl::Span<const std::byte>(int variable)> initial;
};

// FailedPrecondition when the model dir holds another model; names what differs.
absl::StatusOr<std::unique_ptr<ValueSource>> ReadFirstValues(const FirstValuesOptions& options);

}  // namespace muster::train
