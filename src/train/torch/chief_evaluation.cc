#include "train/torch/chief_evaluation.h"

#include "base/status_macros.h"
#include "checkpoint/store.h"

namespace muster::train {

ChiefEvaluation::ChiefEvaluation(const Experiment& experiment, ModelDir& model_dir,
                                 const std::function<void(const std::string&)>& log)
    : experiment_(experiment), model_dir_(model_dir), recorder_(experiment, model_dir, log) {}

// Loads the checkpoint into a model of its own: the values that the chief trains with may be older,
// or incomplete (rows of tables that only other tasks used).
absl::StatusOr<int64_t> ChiefEvaluation::EvaluateNewest(bool final) {
  MUSTER_ASSIGN_OR_RETURN(const checkpoint::Checkpoint stored,
                          checkpoint::Find(model_dir_.folder(), "latest"));
  if (model_ == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(model_, experiment_.model());
  }
  MUSTER_RETURN_IF_ERROR(recorder_.Evaluate(stored, *model_, final));
  return stored.step();
}

}  // namespace muster::train
