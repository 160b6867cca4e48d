#include "train/torch/summaries.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"

namespace muster::train {
namespace {

std::vector<summary::GraphNode> GraphOf(const Environment& environment,
                                        const std::vector<Variable>& variables,
                                        const std::vector<ShardPlan>& plans) {
  std::vector<summary::GraphNode> nodes;
  const std::string worker =
      absl::StrCat("/job:", environment.self.role, "/task:", environment.self.index);
  summary::GraphNode loss{.name = "loss", .op = "Loss", .device = worker};
  for (size_t i = 0; i < variables.size(); ++i) {
    const TensorSpec& spec = variables[i].spec;
    const std::string name = absl::StrReplaceAll(spec.name, {{".", "/"}});
    const std::vector<Extent> extents = ExtentsOf(plans, static_cast<int>(i));
    for (const Extent& extent : extents) {
      summary::GraphNode node{
          .name = name, .op = "VariableV2", .dtype = spec.dtype, .shape = spec.shape};
      if (extents.size() > 1) absl::StrAppend(&node.name, "/part_", extent.server);
      node.device =
          environment.Servers() == 0 ? worker : absl::StrCat("/job:ps/task:", extent.server);
      loss.inputs.push_back(node.name);
      nodes.push_back(std::move(node));
    }
  }
  nodes.push_back(std::move(loss));
  return nodes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Summaries>> Summaries::Open(const Environment& environment,
                                                           const std::vector<Variable>& variables,
                                                           const std::vector<ShardPlan>& plans,
                                                           int64_t step, Log log) {
  MUSTER_ASSIGN_OR_RETURN(auto events, summary::EventWriter::Open(environment.model_dir, "train"));
  if (step > 0) events->Restarted(step + 1);
  events->Graph(GraphOf(environment, variables, plans));
  std::unique_ptr<Summaries> summaries(new Summaries(std::move(events), std::move(log)));
  summaries->Flush();
  return summaries;
}

void Summaries::Flush() {
  const absl::Status status = events_->Flush();
  if (status.ok() || std::exchange(failed_, true)) return;
  log_(absl::StrCat("no more summaries: ", status.message(), "; training continues"));
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
