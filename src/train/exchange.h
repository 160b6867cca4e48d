// How a task's gradients become the job's next values. The training loop knows only this.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/train.h"
#include "train/values.h"

namespace muster::train {

// Others were lost: another attempt may succeed.
inline bool LostPeers(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsAborted(status);
}

// Used by the training thread alone; OnGradient from within backward.
//
// After an error that means LostPeers: Join again and go on from there. Others are final.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // Waits for the others, and brings the model to the job's values. `first` gives them where this
  // task is the chief and the job has none yet. Cancelled: the job is over.
  virtual absl::StatusOr<Progress> Join(FirstValues first) = 0;

  // Waits until this task may compute another step. False: the job is over.
  virtual absl::StatusOr<bool> Begin(const std::vector<Batch>& batches) = 0;
  // The gradient of this parameter is complete.
  virtual void OnGradient(int parameter) = 0;
  // After backward; or instead of it, when the task leaves its gradient out. Returns when the model
  // has its next values.
  virtual absl::StatusOr<Progress> Finish(bool skipped) = 0;

  // How the variables are spread.
  virtual const std::vector<ShardPlan>& plans() const = 0;

  // Waits until the chief has ended the job: until then the others are needed, should what they
  // have done be lost.
  virtual absl::Status AwaitEnd() = 0;

  // The chief's.
  virtual absl::StatusOr<std::unique_ptr<Snapshot>> TakeSnapshot() = 0;
  virtual absl::Status EndAt(int64_t step) = 0;
  // The job is over: servers and the other tasks end.
  virtual absl::Status EndJob() = 0;
};

}  // namespace muster::train
