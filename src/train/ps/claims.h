// Grants steps to tasks when steps are not shared (async, bounded). Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace muster::train {

// A task requests a step, is granted one and completes it:
//
//   kIdle ──Request──> kWaiting ──TakeGrants──> kComputing ──Complete, Leave──> kIdle
//
// INVARIANT: completed + computing <= limit, so a job makes exactly its number of steps. A step
// that a task did not complete before it left is granted again. Not thread-safe.
class Claims {
 public:
  // `cursors`: the steps that each task has completed. `staleness`: how many steps more than the
  // slowest a task may have completed and still be granted another; absent means no limit.
  Claims(std::vector<int64_t> cursors, int64_t completed, int64_t limit,
         std::optional<int64_t> staleness);

  void Request(int rank);
  void Complete(int rank);
  void Leave(int rank);
  void SetLimit(int64_t limit);

  // Returns the ranks that are granted a step now, and marks them as computing.
  std::vector<int> TakeGrants();
  // Returns the waiting ranks if the job is complete: no step is left and none is being computed.
  std::vector<int> TakeDone();

  int64_t completed() const { return completed_; }
  const std::vector<int64_t>& cursors() const { return cursors_; }
  bool IsComputing(int rank) const { return states_[rank] == State::kComputing; }
  // Returns the ranks that the waiting tasks depend on.
  std::vector<int> WaitsFor() const;

 private:
  enum class State { kIdle, kWaiting, kComputing };

  bool MayProceed(int rank) const;
  bool IsAhead(int rank) const;

  std::vector<int64_t> cursors_;
  std::vector<State> states_;
  int64_t completed_;
  int64_t limit_;
  int64_t computing_ = 0;
  std::optional<int64_t> staleness_;
};

}  // namespace muster::train
