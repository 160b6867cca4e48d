// The attempts of tasks, reconstructed from the events of a job.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "job/event_sink.h"

namespace muster::jobs {

struct Attempt {
  cluster::TaskId task;
  int number = 0;  // counts from 0
  absl::Time started;
  std::optional<absl::Time> finished;  // nullopt = it runs
  std::string outcome;                 // "running", "succeeded", "failed: exit code 1", "replaced"
};

// Returns the attempts in order of their start. `events` are those of the job in order; attempts
// from before the first of them are absent.
std::vector<Attempt> AttemptsOf(const std::vector<job::Event>& events,
                                const std::vector<job::TaskRecord>& tasks);

}  // namespace muster::jobs
