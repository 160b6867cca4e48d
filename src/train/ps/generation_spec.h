// What the chief tells a parameter server to hold and how to update it: PREPARE's text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "train/optimizer.h"
#include "train/placement.h"

namespace muster::train {

enum class Strategy { kSync, kAsync, kBounded, kAllReduce };

absl::StatusOr<Strategy> ParseStrategy(absl::string_view name);
absl::string_view ToString(Strategy strategy);

struct GenerationSpec {
  // Differs from that of every earlier beginning: who still believes in one of those is told.
  uint64_t generation = 0;
  Strategy strategy = Strategy::kSync;
  int64_t step = 0;         // that the values belong to
  int64_t limit = 0;        // the step at which the job ends
  int64_t total_steps = 0;  // for the schedule
  int64_t backup_tasks = 0;
  int64_t staleness = 0;
  bool counts_steps = false;     // ps:0
  std::vector<int64_t> cursors;  // batches that each task has contributed
  OptimizerConfig optimizer;
  nlohmann::json schedule;
  nlohmann::json data;  // for the tasks: where their data begins
  ShardShape shape;

  nlohmann::json ToJson() const;
  static absl::StatusOr<GenerationSpec> FromJson(const nlohmann::json& json);
};

}  // namespace muster::train
