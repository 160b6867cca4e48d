// The end of a job: its final checkpoint, and the shutdown of the other tasks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "train/run/environment.h"
#include "train/run/model_dir.h"
#include "train/run/saver.h"
#include "train/torch/exchange/exchange.h"

namespace muster::train {

// Not thread-safe.
class EndOfJob {
 public:
  // `environment` and `model_dir` must outlive this object.
  EndOfJob(const Environment& environment, ModelDir& model_dir, int64_t max_steps,
           std::function<void(const std::string&)> log);

  // Returns whether the model dir holds the final checkpoint of this job, or one after which no
  // steps are left.
  bool HasEnded() const;

  // For the chief. Calls `save` to save the final checkpoint of `step`, unless it exists and no
  // step was made since `first_step`, at which the chief joined; then only publishes it.
  absl::Status SaveFinal(int64_t step, int64_t first_step, Saver& saver,
                         absl::FunctionRef<absl::Status()> save);

  // For the chief, once everything is saved: ends the other tasks and logs the result. `saver` may
  // be null.
  void EndTasks(Exchange& exchange, int64_t step, const Saver* saver);

 private:
  const Environment& environment_;
  ModelDir& model_dir_;
  const int64_t max_steps_;
  const std::function<void(const std::string&)> log_;
  bool nothing_to_do_ = false;  // the final checkpoint existed
};

}  // namespace muster::train
