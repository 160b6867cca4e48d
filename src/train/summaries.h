// What the chief writes for TensorBoard while it trains.
#pragma once

#include <functional>
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
  static absl::StatusOr<std::unique_ptr<Summaries>> Open(
      const Environment& environment, const std::vector<Variable>& variables,
      const std::vector<ShardPlan>& plans, int64_t step,
      std::function<void(const std::string&)> log);

  void Scalar(const std::string& tag, int64_t step, double value) {
    events_->Scalar(tag, step, value);
  }
  void Histograms(const Replica& replica, int64_t step);
  // What cannot be written is lost, and said once: training goes on.
  void Flush();

 private:
  using Log = std::function<void(const std::string&)>;
  Summaries(std::unique_ptr<summary::EventWriter> events, Log log)
      : events_(std::move(events)), log_(std::move(log)) {}

  std::unique_ptr<summary::EventWriter> events_;
  Log log_;
  bool failed_ = false;
};

}  // namespace muster::train
