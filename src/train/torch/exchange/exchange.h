// The exchange of gradients for the job's next values: the training loop's only interface to other
// tasks.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/train.h"
#include "train/core/values.h"

namespace muster::train {

// Returns whether the error means that peers were lost, so that another attempt may succeed.
inline bool LostPeers(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsAborted(status);
}

// Used by the training thread only; OnGradient() is called from within backward. After an error for
// which LostPeers() holds, call Join() again and continue from there. Other errors are final.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // Waits for the other tasks and sets the model to the job's values. `first` provides them if this
  // task is the chief and the job has none yet. Returns Cancelled if the job is complete.
  virtual absl::StatusOr<Progress> Join(FirstValues first) = 0;

  // Waits until this task may compute another step. Returns false if the job is complete.
  virtual absl::StatusOr<bool> Begin(const std::vector<Batch>& batches) = 0;
  // Called when the gradient of a parameter is complete.
  virtual void OnGradient(int parameter) = 0;
  // Called after backward, or instead of it with `skipped`, which leaves this task's gradient out.
  // Returns when the model has its next values.
  virtual absl::StatusOr<Progress> Finish(bool skipped) = 0;

  // The placement of the variables.
  virtual const std::vector<ShardPlan>& plans() const = 0;

  // Waits until the chief has ended the job. Until then all tasks stay, to repeat steps that may be
  // lost.
  virtual absl::Status AwaitEnd() = 0;

  // For the chief only.
  virtual absl::StatusOr<std::unique_ptr<Snapshot>> TakeSnapshot() = 0;
  virtual absl::Status EndAt(int64_t step) = 0;
  // Ends the job: servers and the other tasks exit.
  virtual absl::Status EndJob() = 0;
};

}  // namespace muster::train
