#include "train/core/optimizer.h"

#include <string>
#include <utility>

#include "base/status_macros.h"
#include "train/core/config_section.h"

namespace muster::train {
namespace {

using Kind = OptimizerConfig::Kind;

constexpr absl::string_view kKindNames[] = {"sgd", "adam", "adamw", "adagrad", "rmsprop"};

Kind KindOf(absl::string_view name) {
  int kind = 0;
  while (kKindNames[kind] != name) ++kind;
  return static_cast<Kind>(kind);
}

bool IsAdam(Kind kind) { return kind == Kind::kAdam || kind == Kind::kAdamW; }

// The largest double below 1: the decay of a running mean must be less than 1.
constexpr double kBelowOne = 1 - 0x1p-53;

}  // namespace

absl::StatusOr<OptimizerConfig> OptimizerConfig::FromJson(const nlohmann::json& optimizer,
                                                          double weight_decay) {
  ConfigSection section(optimizer, "'optimizer' of train");
  OptimizerConfig config;
  config.kind = KindOf(section.Choice("type", kKindNames, "sgd"));
  config.learning_rate = section.Number("learning_rate", 0, 1000, config.learning_rate);
  if (config.kind == Kind::kSgd || config.kind == Kind::kRmsProp) {
    config.momentum = section.Number("momentum", 0, 1, 0);
  }
  if (config.kind == Kind::kSgd) {
    config.nesterov = section.Bool("nesterov", false);
    if (config.nesterov && config.momentum == 0) {
      section.Refuse("has 'nesterov: true' without momentum; add e.g. 'momentum: 0.9'");
    }
  } else {
    const double usual = config.kind == Kind::kAdagrad ? 1e-10 : config.epsilon;
    config.epsilon = section.Number("epsilon", 0, 1, usual);
  }
  if (IsAdam(config.kind)) {
    config.beta1 = section.Number("beta1", 0, kBelowOne, config.beta1);
    config.beta2 = section.Number("beta2", 0, kBelowOne, config.beta2);
  }
  if (config.kind == Kind::kRmsProp) {
    config.decay = section.Number("decay", 0, kBelowOne, config.decay);
  }
  if (!(weight_decay >= 0 && weight_decay <= 1)) {
    return absl::InvalidArgumentError("'weight_decay' of train is not a number from 0 to 1");
  }
  config.weight_decay = weight_decay;
  MUSTER_RETURN_IF_ERROR(section.Finish());
  return config;
}

nlohmann::json OptimizerConfig::ToJson() const {
  nlohmann::json json = {{"type", std::string(kKindNames[static_cast<int>(kind)])},
                         {"learning_rate", learning_rate}};
  if (kind == Kind::kSgd || kind == Kind::kRmsProp) json["momentum"] = momentum;
  if (kind == Kind::kSgd) json["nesterov"] = nesterov;
  if (kind != Kind::kSgd) json["epsilon"] = epsilon;
  if (IsAdam(kind)) {
    json["beta1"] = beta1;
    json["beta2"] = beta2;
  }
  if (kind == Kind::kRmsProp) json["decay"] = decay;
  return json;
}

std::vector<absl::string_view> SlotNames(const OptimizerConfig& config) {
  switch (config.kind) {
    case Kind::kSgd:
      if (config.momentum == 0) return {};
      return {"momentum"};
    case Kind::kAdam:
    case Kind::kAdamW:
      return {"exp_avg", "exp_avg_sq"};
    case Kind::kAdagrad:
      return {"sum"};
    case Kind::kRmsProp:
      if (config.momentum == 0) return {"square_avg"};
      return {"square_avg", "momentum"};
  }
  return {};
}

}  // namespace muster::train
