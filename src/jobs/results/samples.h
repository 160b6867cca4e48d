// What the tasks of a job use of their machines, now and over time.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cluster/task_id.h"
#include "job/event_sink.h"
#include "jobs/service.h"
#include "supervise/usage/sample.h"

namespace muster::jobs {

using supervise::Load;
using supervise::Sample;

// The samples of a task, of all its attempts, oldest first: recent ones cover seconds, old ones are
// merged. At most supervise::kMaxSamples.
struct TaskSamples {
  cluster::TaskId task;
  std::vector<Sample> samples;  // empty if there are none, or none is readable
};

// Returns the samples of every task of the job, in the order of its tasks. Works while the job runs
// and after its end.
absl::StatusOr<std::vector<TaskSamples>> ReadSamples(Service& service, const job::JobRecord& job);

// The usage of a task in short.
struct TaskUsage {
  // The newest sample of a task that runs; nullopt if the current attempt has none yet, or none
  // arrived for a while.
  std::optional<Sample> current;
  // All samples merged into one, with the peaks of all attempts; nullopt if there are none.
  std::optional<Sample> total;
};

// `age` is the time since the last sample arrived.
TaskUsage UsageOf(const job::TaskRecord& task, const std::vector<Sample>& samples,
                  absl::Duration age);
// Returns the usage of the tasks that have samples.
std::map<cluster::TaskId, TaskUsage> ReadUsage(const job::JobRecord& job,
                                               const std::vector<job::TaskRecord>& tasks);

}  // namespace muster::jobs
