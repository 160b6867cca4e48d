// The text of PREPARE: the shard that a parameter server holds and how it is updated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "train/core/optimizer.h"
#include "train/core/placement.h"

namespace muster::train {

enum class Strategy { kSync, kAsync, kBounded, kAllReduce };

absl::StatusOr<Strategy> ParseStrategy(absl::string_view name);
absl::string_view ToString(Strategy strategy);

struct GenerationSpec {
  // Greater than that of every earlier generation, so that stale messages are recognized.
  uint64_t generation = 0;
  Strategy strategy = Strategy::kSync;
  int64_t step = 0;         // of the first values
  int64_t limit = 0;        // the step at which the job ends
  int64_t total_steps = 0;  // for the schedule
  int64_t backup_tasks = 0;
  int64_t staleness = 0;
  bool counts_steps = false;     // ps:0
  std::vector<int64_t> cursors;  // batches that each task has contributed
  OptimizerConfig optimizer;
  nlohmann::json schedule;
  nlohmann::json data;  // DataOrigin, for the tasks
  ShardShape shape;

  nlohmann::json ToJson() const;
  static absl::StatusOr<GenerationSpec> FromJson(const nlohmann::json& json);
};

}  // namespace muster::train
