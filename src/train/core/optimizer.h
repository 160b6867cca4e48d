// The optimizer that updates the variables, and its constants.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace muster::train {

// Each constant means the same as in the torch.optim class of that name. Weight decay is added to
// the gradient, except with kAdamW, which decays the variable itself.
struct OptimizerConfig {
  enum class Kind { kSgd, kAdam, kAdamW, kAdagrad, kRmsProp };

  Kind kind = Kind::kSgd;
  double learning_rate = 0.01;
  double momentum = 0;    // sgd, rmsprop
  bool nesterov = false;  // sgd
  double beta1 = 0.9;     // adam, adamw
  double beta2 = 0.999;   // adam, adamw
  double decay = 0.99;    // rmsprop: decay of the mean square per step
  double epsilon = 1e-8;  // all but sgd; adagrad: 1e-10
  double weight_decay = 0;

  // Parses `optimizer` of a job's train configuration: type, learning_rate and the constants that
  // the type uses. Returns InvalidArgument for any other key. `weight_decay` is a key beside that
  // section, not in it.
  static absl::StatusOr<OptimizerConfig> FromJson(const nlohmann::json& optimizer,
                                                  double weight_decay = 0);
  // Returns JSON that FromJson(…, weight_decay) parses to an equal configuration.
  nlohmann::json ToJson() const;

  friend bool operator==(const OptimizerConfig&, const OptimizerConfig&) = default;
};

// A variable has at most this many slots.
inline constexpr int kMaxSlots = 2;

// Returns the names of the optimizer's slots (its state per element of a variable), in the order
// that Apply() expects. Slots start as zeros. The names are PyTorch's, except "momentum".
std::vector<absl::string_view> SlotNames(const OptimizerConfig& config);

}  // namespace muster::train
