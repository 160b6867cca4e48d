// A run as its event files tell it, put together.
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

struct Run {
  Series<float> scalars;
  Series<Histogram> histograms;
  std::string graph_def;  // the last one written; "" = none

  void Add(Event event);
};

struct RunWithProblems {
  Run run;
  std::vector<absl::Status> problems;  // files that could not be read, or not to their end
};

// The event files in `folder`, in the order in which they were begun, without what a restart has
// made void. Not those in folders below: they are other runs. NotFound when there is no such
// folder.
absl::StatusOr<RunWithProblems> ReadRun(const std::string& folder);

}  // namespace muster::summary
