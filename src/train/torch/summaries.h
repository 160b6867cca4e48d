// The summaries for TensorBoard that the chief writes during training.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "summary/event_writer.h"
#include "train/run/model_graph.h"
#include "train/torch/exchange/replica.h"

namespace muster::train {

class Summaries {
 public:
  // Writes the graph first. `step`: completed steps; invalidates later events of an earlier run.
  static absl::StatusOr<std::unique_ptr<Summaries>> Open(
      const GraphInput& graph, int64_t step, std::function<void(const std::string&)> log);

  void Scalar(const std::string& tag, int64_t step, double value) {
    events_->Scalar(tag, step, value);
  }
  void Histograms(const Replica& replica, int64_t step);
  // Logs only the first failure; events that cannot be written are dropped.
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
