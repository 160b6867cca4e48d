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

void Claims::Ask(int rank) {
  if (states_[rank] == State::kIdle) states_[rank] = State::kAsking;
}

void Claims::Complete(int rank) {
  ++completed_;
  ++cursors_[rank];
  if (states_[rank] != State::kComputing) return;
  states_[rank] = State::kIdle;
  --computing_;
}

void Claims::Leave(int rank) {
  if (states_[rank] == State::kComputing) --computing_;
  states_[rank] = State::kIdle;
}

void Claims::SetLimit(int64_t limit) { limit_ = std::min(limit_, limit); }

bool Claims::MayGo(int rank) const {
  if (completed_ + computing_ >= limit_) return false;
  if (!staleness_.has_value()) return true;
  return cursors_[rank] - *std::min_element(cursors_.begin(), cursors_.end()) <= *staleness_;
}

std::vector<int> Claims::TakeGrants() {
  std::vector<int> granted;
  for (size_t rank = 0; rank < states_.size(); ++rank) {
    if (states_[rank] != State::kAsking || !MayGo(static_cast<int>(rank))) continue;
    states_[rank] = State::kComputing;
    ++computing_;
    granted.push_back(static_cast<int>(rank));
  }
  return granted;
}

std::vector<int> Claims::TakeDone() {
  std::vector<int> done;
  if (completed_ < limit_) return done;
  for (size_t rank = 0; rank < states_.size(); ++rank) {
    if (states_[rank] != State::kAsking) continue;
    states_[rank] = State::kIdle;
    done.push_back(static_cast<int>(rank));
  }
  return done;
}

std::vector<int> Claims::WaitsFor(int rank) const {
  std::vector<int> others;
  const bool nothing_left = completed_ + computing_ >= limit_;
  const int64_t slowest = *std::min_element(cursors_.begin(), cursors_.end());
  for (size_t other = 0; other < states_.size(); ++other) {
    if (static_cast<int>(other) == rank) continue;
    const bool last = nothing_left && states_[other] == State::kComputing;
    const bool behind = staleness_.has_value() && cursors_[other] == slowest;
    if (last || behind) others.push_back(static_cast<int>(other));
  }
  return others;
}

}  // namespace muster::train
