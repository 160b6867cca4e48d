#include "jobs/results/graph.h"

#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "storage/url.h"
#include "summary/folder.h"

namespace muster::jobs {
namespace {

// Returns the task of "/job:ps/task:0", with or without further parts.
std::optional<cluster::TaskId> TaskOf(const std::string& device) {
  std::string role, index;
  for (absl::string_view part : absl::StrSplit(device, '/')) {
    if (absl::ConsumePrefix(&part, "job:")) role = std::string(part);
    if (absl::ConsumePrefix(&part, "task:")) index = std::string(part);
  }
  auto task = cluster::TaskId::Parse(role + ":" + index);
  if (role.empty() || index.empty() || !task.ok()) return std::nullopt;
  return *std::move(task);
}

bool IsVariable(const summary::DecodedNode& node) { return absl::StrContains(node.op, "Variable"); }

}  // namespace

absl::StatusOr<ModelGraph> ReadGraph(const job::JobRecord& job) {
  ModelGraph result;
  if (job.model_dir.empty() || storage::IsRemote(job.model_dir)) return result;
  const auto run =
      summary::ReadRun(job.model_dir, job.created, job.finished.value_or(absl::InfiniteFuture()));
  if (absl::IsNotFound(run.status())) return result;
  MUSTER_RETURN_IF_ERROR(run.status());
  auto nodes = summary::DecodeGraph(run->run.graph_def);
  if (!nodes) return absl::DataLossError("the graph in the event files is malformed");
  result.nodes = *std::move(nodes);
  std::map<std::string, GraphDevice> devices;
  for (const summary::DecodedNode& node : result.nodes) {
    if (node.device.empty()) continue;
    GraphDevice& device = devices[node.device];
    device.name = node.device;
    device.task = TaskOf(node.device);
    if (IsVariable(node)) device.bytes += node.bytes.value_or(0);
  }
  for (auto& [name, device] : devices) result.devices.push_back(std::move(device));
  return result;
}

}  // namespace muster::jobs
