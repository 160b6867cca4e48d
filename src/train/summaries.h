// What the chief writes for TensorBoard while it trains.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "summary/event_writer.h"
#include "train/environment.h"
#include "train/placement.h"
#include "train/replica.h"

namespace muster::train {

class Summaries {
 public:
  // Begins with the graph: the variables with the tasks that keep them, and who computes with them.
  // `step`: completed; what an earlier run wrote beyond is void.
  static absl::StatusOr<std::unique_ptr<Summaries>> Open(const Environment& environment,
                                                         const std::vector<Variable>& variables,
                                                         const std::vector<ShardPlan>& plans,
                                                         int64_t step);

  void Scalar(const std::string& tag, int64_t step, double value) {
    events_->Scalar(tag, step, value);
  }
  void Histograms(const Replica& replica, int64_t step);
  // What cannot be written is lost: training goes on.
  void Flush() { events_->Flush().IgnoreError(); }

 private:
  explicit Summaries(std::unique_ptr<summary::EventWriter> events) : events_(std::move(events)) {}

  std::unique_ptr<summary::EventWriter> events_;
};

}  // namespace muster::train
