#include "train/core/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "train/core/config_section.h"

namespace muster::train {
namespace {

constexpr absl::string_view kTypeNames[] = {"constant", "linear", "cosine", "exponential", "step"};
constexpr int64_t kMaxSteps = 1'000'000'000'000'000;

}  // namespace

absl::StatusOr<Schedule> Schedule::FromJson(const nlohmann::json& json, double base_learning_rate,
                                            int64_t total_steps) {
  ConfigSection section(json, "'schedule' of train");
  Schedule schedule;
  const std::string type = section.Choice("type", kTypeNames, "constant");
  schedule.type_ = static_cast<Type>(std::find(std::begin(kTypeNames), std::end(kTypeNames), type) -
                                     std::begin(kTypeNames));
  schedule.base_ = base_learning_rate;
  schedule.warmup_steps_ = section.Int("warmup_steps", 0, kMaxSteps, 0);
  if (schedule.type_ != Type::kConstant) {
    const int64_t rest = std::max<int64_t>(total_steps - schedule.warmup_steps_, 1);
    schedule.decay_steps_ = section.Int("decay_steps", 1, kMaxSteps, rest);
    schedule.end_ = section.Number("end_learning_rate", 0, 1000, 0);
  }
  if (schedule.type_ == Type::kExponential || schedule.type_ == Type::kStep) {
    schedule.decay_rate_ = section.Number("decay_rate", 0, 1, 0.1);
    if (schedule.end_ > schedule.base_) {
      section.Refuse(absl::StrCat("has 'end_learning_rate' ", schedule.end_,
                                  " above the learning rate ", schedule.base_,
                                  "; choose a smaller one"));
    }
  }
  if (schedule.type_ == Type::kStep && !section.Has("decay_steps")) {
    section.Refuse("is of type step and needs 'decay_steps': after how many steps the rate falls");
  }
  MUSTER_RETURN_IF_ERROR(section.Finish());
  return schedule;
}

double Schedule::LearningRate(int64_t step) const {
  if (step <= warmup_steps_) {
    return base_ * static_cast<double>(step) / static_cast<double>(warmup_steps_);
  }
  const int64_t since = step - 1 - warmup_steps_;
  const double part = static_cast<double>(since) / static_cast<double>(decay_steps_);
  switch (type_) {
    case Type::kConstant:
      return base_;
    case Type::kLinear:
      return part >= 1 ? end_ : base_ + (end_ - base_) * part;
    case Type::kCosine:
      return part >= 1 ? end_ : end_ + (base_ - end_) * (1 + std::cos(std::numbers::pi * part)) / 2;
    case Type::kExponential:
      return std::max(end_, base_ * std::pow(decay_rate_, part));
    case Type::kStep: {
      const int64_t falls = since / decay_steps_;
      return std::max(end_, base_ * std::pow(decay_rate_, static_cast<double>(falls)));
    }
  }
  return base_;
}

}  // namespace muster::train
