#include "train/ps/generation_spec.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace muster::train {
namespace {

constexpr absl::string_view kStrategies[] = {"sync", "async", "bounded", "allreduce"};

}  // namespace

absl::StatusOr<Strategy> ParseStrategy(absl::string_view name) {
  for (size_t i = 0; i < std::size(kStrategies); ++i) {
    if (kStrategies[i] == name) return static_cast<Strategy>(i);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown strategy '", name, "': sync, async, bounded or allreduce"));
}

absl::string_view ToString(Strategy strategy) { return kStrategies[static_cast<int>(strategy)]; }

nlohmann::json GenerationSpec::ToJson() const {
  return {{"generation", generation},
          {"strategy", std::string(ToString(strategy))},
          {"step", step},
          {"limit", limit},
          {"total_steps", total_steps},
          {"backup_tasks", backup_tasks},
          {"staleness", staleness},
          {"counts_steps", counts_steps},
          {"cursors", cursors},
          {"optimizer", optimizer.ToJson()},
          {"weight_decay", optimizer.weight_decay},
          {"schedule", schedule},
          {"shape", shape.ToJson()}};
}

absl::StatusOr<GenerationSpec> GenerationSpec::FromJson(const nlohmann::json& json) {
  GenerationSpec spec;
  try {
    spec.generation = json.at("generation");
    MUSTER_ASSIGN_OR_RETURN(spec.strategy, ParseStrategy(json.at("strategy").get<std::string>()));
    spec.step = json.at("step");
    spec.limit = json.at("limit");
    spec.total_steps = json.at("total_steps");
    spec.backup_tasks = json.at("backup_tasks");
    spec.staleness = json.at("staleness");
    spec.counts_steps = json.at("counts_steps");
    spec.cursors = json.at("cursors").get<std::vector<int64_t>>();
    MUSTER_ASSIGN_OR_RETURN(
        spec.optimizer, OptimizerConfig::FromJson(json.at("optimizer"), json.at("weight_decay")));
    spec.schedule = json.at("schedule");
    MUSTER_ASSIGN_OR_RETURN(spec.shape, ShardShape::FromJson(json.at("shape")));
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("the chief's description of the shard is damaged: ", error.what()));
  }
  return spec;
}

}  // namespace muster::train
