#include "train/ps/claims.h"

#include <algorithm>

namespace muster::train {

Claims::Claims(std::vector<int64_t> cursors, int64_t completed, int64_t limit,
               std::optional<int64_t> staleness)
    : cursors_(std::move(cursors)),
      states_(cursors_.size(), State::kIdle),
      completed_(completed),
      limit_(limit),
      staleness_(staleness) {}

void Claims::Request(int rank) {
  if (states_[rank] == State::kIdle) states_[rank] = State::kWaiting;
}

void Claims::Complete(int rank) {
  ++completed_;
  ++cursors_[rank];
  if (states_[rank] != State::kComputing) return;
  states_[rank] = State::kIdle;
  --computing_;
}

// The cursor does not move, so the task's next attempt is granted the same sequence and computes
// the same batch.
void Claims::Leave(int rank) {
  if (states_[rank] == State::kComputing) --computing_;
  states_[rank] = State::kIdle;
}

void Claims::SetLimit(int64_t limit) { limit_ = std::min(limit_, limit); }

// Returns whether the task is too far ahead of the slowest for another step.
bool Claims::IsAhead(int rank) const {
  if (!staleness_.has_value()) return false;
  return cursors_[rank] - *std::min_element(cursors_.begin(), cursors_.end()) > *staleness_;
}

bool Claims::MayProceed(int rank) const {
  return completed_ + computing_ < limit_ && !IsAhead(rank);
}

std::vector<int> Claims::TakeGrants() {
  std::vector<int> granted;
  for (size_t rank = 0; rank < states_.size(); ++rank) {
    if (states_[rank] != State::kWaiting || !MayProceed(static_cast<int>(rank))) continue;
    states_[rank] = State::kComputing;
    ++computing_;
    granted.push_back(static_cast<int>(rank));
  }
  return granted;
}

std::vector<int> Claims::TakeDone() {
  std::vector<int> done;
  if (completed_ < limit_ || computing_ > 0) return done;  // all tasks must get the same final step
  for (size_t rank = 0; rank < states_.size(); ++rank) {
    if (states_[rank] != State::kWaiting) continue;
    states_[rank] = State::kIdle;
    done.push_back(static_cast<int>(rank));
  }
  return done;
}

std::vector<int> Claims::WaitsFor() const {
  // A waiting task depends on others for two reasons: all remaining steps are being computed and
  // one may be granted again (`all_taken`), or it is too far ahead of the slowest (`ahead`).
  bool asked = false;
  bool ahead = false;
  for (size_t rank = 0; rank < states_.size(); ++rank) {
    if (states_[rank] != State::kWaiting) continue;
    asked = true;
    ahead = ahead || IsAhead(static_cast<int>(rank));
  }
  std::vector<int> others;
  const bool all_taken = asked && completed_ + computing_ >= limit_;
  const int64_t slowest = *std::min_element(cursors_.begin(), cursors_.end());
  for (size_t rank = 0; rank < states_.size(); ++rank) {
    const bool last = all_taken && states_[rank] == State::kComputing;
    const bool behind = ahead && cursors_[rank] == slowest;
    if (last || behind) others.push_back(static_cast<int>(rank));
  }
  return others;
}

}  // namespace muster::train
