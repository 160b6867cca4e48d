// Which task may compute the next step, when steps are not shared: async and bounded. Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace muster::train {

// A task asks for a step, is granted one, completes it. Grants are never more than the steps that
// are left, so a job makes exactly as many as it should; one that a task did not complete before it
// left is granted again.
class Claims {
 public:
  // `cursors`: how many steps each task has completed. `staleness`: how many more than the slowest
  // a task may have completed and still go on; absent: any number.
  Claims(std::vector<int64_t> cursors, int64_t completed, int64_t limit,
         std::optional<int64_t> staleness);

  void Ask(int rank);
  void Complete(int rank);
  void Leave(int rank);
  void SetLimit(int64_t limit);

  // The tasks that may go on now.
  std::vector<int> TakeGrants();
  // The tasks that asked when there was nothing left to do, and all of it is done.
  std::vector<int> TakeDone();

  int64_t completed() const { return completed_; }
  const std::vector<int64_t>& cursors() const { return cursors_; }
  bool IsComputing(int rank) const { return states_[rank] == State::kComputing; }
  // Those for whom the tasks that ask wait.
  std::vector<int> WaitsFor() const;

 private:
  enum class State { kIdle, kAsking, kComputing };

  bool MayGo(int rank) const;
  bool IsAhead(int rank) const;

  std::vector<int64_t> cursors_;
  std::vector<State> states_;
  int64_t completed_;
  int64_t limit_;
  int64_t computing_ = 0;
  std::optional<int64_t> staleness_;
};

}  // namespace muster::train
