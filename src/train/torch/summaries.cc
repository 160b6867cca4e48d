#include "train/torch/summaries.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace muster::train {
absl::StatusOr<std::unique_ptr<Summaries>> Summaries::Open(const GraphInput& graph, int64_t step,
                                                           Log log) {
  MUSTER_ASSIGN_OR_RETURN(auto events,
                          summary::EventWriter::Open(graph.environment.model_dir, "train"));
  if (step > 0) events->Restarted(step + 1);
  events->Graph(MakeGraph(graph));
  std::unique_ptr<Summaries> summaries(new Summaries(std::move(events), std::move(log)));
  summaries->Flush();
  return summaries;
}

void Summaries::Flush() {
  const absl::Status status = events_->Flush();
  if (status.ok() || std::exchange(failed_, true)) return;
  log_(absl::StrCat("stopped writing summaries: ", status.message(), "; training continues"));
}

void Summaries::Histograms(const Replica& replica, int64_t step) {
  for (int i = 0; i < replica.parameter_count(); ++i) {
    const auto bytes = replica.Bytes(i);
    events_->Histogram(
        replica.variables()[i].spec.name, step,
        {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)});
  }
}

}  // namespace muster::train
