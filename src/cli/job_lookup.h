// Finding jobs, as they are now.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/context.h"
#include "job/event_sink.h"

namespace muster::cli {

// The job that `reference` means.
absl::StatusOr<JobRecord> FindJob(Context& context, const std::string& reference);
// The newest job that is not finished, else the newest of all: what `muster show` alone means.
absl::StatusOr<JobRecord> LatestJob(Context& context);

// The job of that name that is not finished; there is at most one.
absl::StatusOr<std::optional<JobRecord>> RunningJob(Context& context, const std::string& name);

// Brings a record up to date with its platform: a job whose supervisor died is marked Failed, and
// what it left running is ended. Nothing is concluded from a platform that does not answer.
absl::Status Refresh(Context& context, JobRecord& job);

// "worker:1", "worker" (all of them); InvalidArgument names the tasks there are.
absl::StatusOr<std::vector<TaskId>> SelectTasks(const std::vector<TaskRecord>& tasks,
                                                const std::vector<std::string>& selectors);

}  // namespace muster::cli
