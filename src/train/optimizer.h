// Which optimizer updates the variables, and with which constants.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace muster::train {

// The meaning of every constant is that of the torch.optim class of the same name. Weight decay is
// added to the gradient, except with kAdamW, which shrinks the variable itself.
struct OptimizerConfig {
  enum class Kind { kSgd, kAdam, kAdamW, kAdagrad, kRmsProp };

  Kind kind = Kind::kSgd;
  double learning_rate = 0.01;
  double momentum = 0;    // sgd, rmsprop
  bool nesterov = false;  // sgd
  double beta1 = 0.9;     // adam, adamw
  double beta2 = 0.999;   // adam, adamw
  double decay = 0.99;    // rmsprop: how much of the mean square is kept a step
  double epsilon = 1e-8;  // all but sgd; adagrad: 1e-10
  double weight_decay = 0;

  // From `optimizer` of a job's train configuration: type, learning_rate, and of the others those
  // that the type uses; any other key is refused. `weight_decay` stands beside that section, not in
  // it.
  static absl::StatusOr<OptimizerConfig> FromJson(const nlohmann::json& optimizer,
                                                  double weight_decay = 0);
  // What FromJson(…, weight_decay) reads back to the same.
  nlohmann::json ToJson() const;

  friend bool operator==(const OptimizerConfig&, const OptimizerConfig&) = default;
};

// A variable has at most this many slots.
inline constexpr int kMaxSlots = 2;

// What the optimizer remembers of each element of a variable, in the order in which Apply() takes
// them. All begin as zeros. The names are PyTorch's, but for "momentum".
std::vector<absl::string_view> SlotNames(const OptimizerConfig& config);

}  // namespace muster::train
