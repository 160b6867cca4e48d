// Combines the event files of a run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "summary/event_reader.h"
#include "summary/histogram.h"

namespace muster::summary {

template <typename Value>
struct Point {
  int64_t step = 0;
  absl::Time time;
  Value value;
};
template <typename Value>
using Series = std::map<std::string, std::vector<Point<Value>>, std::less<>>;  // by tag

// The content of a run's event files, without steps that a restart made void.
struct Run {
  Series<float> scalars;
  Series<Histogram> histograms;
  std::string graph_def;  // the last one; "" = none

  void Add(Event event);
};

struct RunWithProblems {
  Run run;
  std::vector<absl::Status> problems;  // files that could not be read completely
};

// Reads the event files in `folder` in order of creation, but not in its subfolders, which are
// other runs. Events before `begin` or after `end` are left out, and make nothing void. Returns
// NotFound if there is no such folder.
absl::StatusOr<RunWithProblems> ReadRun(const std::string& folder,
                                        absl::Time begin = absl::InfinitePast(),
                                        absl::Time end = absl::InfiniteFuture());

}  // namespace muster::summary
