// Evaluation by the chief, in a job without an evaluator.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "muster/train.h"
#include "train/run/model_dir.h"
#include "train/torch/evaluation.h"

namespace muster::train {

// Not thread-safe.
class ChiefEvaluation {
 public:
  // `experiment` and `model_dir` must outlive this object.
  ChiefEvaluation(const Experiment& experiment, ModelDir& model_dir,
                  const std::function<void(const std::string&)>& log);

  // Evaluates the newest checkpoint and returns its step. `final`: the job's last.
  absl::StatusOr<int64_t> EvaluateNewest(bool final);

 private:
  const Experiment& experiment_;
  ModelDir& model_dir_;
  EvalRecorder recorder_;
  std::unique_ptr<Model> model_;  // made for the first evaluation
};

}  // namespace muster::train
