#include "train/ps/generation_spec.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace muster::train {
namespace {

constexpr absl::string_view kStrategies[] = {"sync", "async", "bounded", "allreduce"};
constexpr int64_t kMaxSteps = int64_t{1} << 52;

absl::StatusOr<int64_t> CountIn(const nlohmann::json& json) {
  const bool whole = json.is_number_integer();
  const int64_t count = whole ? json.get<int64_t>() : -1;
  if (count >= 0 && count <= kMaxSteps) return count;
  return absl::InvalidArgumentError("the chief sent a malformed description of the shard");
}

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
          {"data", data},
          {"shape", shape.ToJson()}};
}

absl::StatusOr<GenerationSpec> GenerationSpec::FromJson(const nlohmann::json& json) {
  GenerationSpec spec;
  try {
    spec.generation = json.at("generation");
    MUSTER_ASSIGN_OR_RETURN(spec.strategy, ParseStrategy(json.at("strategy").get<std::string>()));
    MUSTER_ASSIGN_OR_RETURN(spec.step, CountIn(json.at("step")));
    MUSTER_ASSIGN_OR_RETURN(spec.limit, CountIn(json.at("limit")));
    MUSTER_ASSIGN_OR_RETURN(spec.total_steps, CountIn(json.at("total_steps")));
    MUSTER_ASSIGN_OR_RETURN(spec.backup_tasks, CountIn(json.at("backup_tasks")));
    MUSTER_ASSIGN_OR_RETURN(spec.staleness, CountIn(json.at("staleness")));
    spec.counts_steps = json.at("counts_steps");
    for (const auto& entry : json.at("cursors")) {
      MUSTER_ASSIGN_OR_RETURN(const int64_t cursor, CountIn(entry));
      spec.cursors.push_back(cursor);
    }
    MUSTER_ASSIGN_OR_RETURN(
        spec.optimizer, OptimizerConfig::FromJson(json.at("optimizer"), json.at("weight_decay")));
    spec.schedule = json.at("schedule");
    spec.data = json.at("data");
    MUSTER_ASSIGN_OR_RETURN(spec.shape, ShardShape::FromJson(json.at("shape")));
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("the chief sent a malformed description of the shard: ", error.what()));
  }
  return spec;
}

}  // namespace muster::train
