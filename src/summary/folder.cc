#include "summary/folder.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "base/files/files.h"
#include "base/status_macros.h"

namespace muster::summary {
namespace {

// Sorting by name is sorting by creation: the names start with the time in ten digits.
absl::StatusOr<std::vector<std::string>> EventFiles(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  while (!error && entries != std::filesystem::directory_iterator()) {
    const std::string name = entries->path().filename().string();
    if (absl::StrContains(name, ".tfevents.")) paths.push_back(base::JoinPath(folder, name));
    entries.increment(error);
  }
  if (error) return absl::ErrnoToStatus(error.value(), folder);
  std::sort(paths.begin(), paths.end());
  return paths;
}

absl::Status AddFile(const std::string& path, absl::Time begin, absl::Time end, Run& run) {
  MUSTER_ASSIGN_OR_RETURN(EventReader reader, EventReader::Open(path));
  for (;;) {
    MUSTER_ASSIGN_OR_RETURN(std::optional<Event> event, reader.Next());
    if (!event) return absl::OkStatus();
    if (event->time >= begin && event->time <= end) run.Add(*std::move(event));
  }
}

template <typename Value>
void DropFrom(int64_t step, Series<Value>& series) {
  for (auto& [tag, points] : series) {
    std::erase_if(points, [step](const auto& point) { return point.step >= step; });
  }
  std::erase_if(series, [](const auto& entry) { return entry.second.empty(); });
}

}  // namespace

void Run::Add(Event event) {
  if (event.restarted) {
    DropFrom(event.step, scalars);
    DropFrom(event.step, histograms);
  }
  if (!event.graph_def.empty()) graph_def = std::move(event.graph_def);
  for (Event::Scalar& scalar : event.scalars) {
    scalars[scalar.tag].push_back({event.step, event.time, scalar.value});
  }
  for (Event::Distribution& distribution : event.distributions) {
    histograms[distribution.tag].push_back(
        {event.step, event.time, std::move(distribution.histogram)});
  }
}

absl::StatusOr<RunWithProblems> ReadRun(const std::string& folder, absl::Time begin,
                                        absl::Time end) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> paths, EventFiles(folder));
  RunWithProblems result;
  for (const std::string& path : paths) {
    absl::Status status = AddFile(path, begin, end, result.run);
    if (!status.ok()) result.problems.push_back(std::move(status));
  }
  return result;
}

}  // namespace muster::summary
