// Starts a new run of a finished job in the same model dir.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "job/event_sink.h"
#include "job/submission.h"
#include "jobs/service.h"

namespace muster::jobs {

// Returns the new run, which continues from the checkpoint of `step`; nullopt = the last one.
// Starts nothing. Returns FailedPrecondition if the job, or a later run of it, is not finished, or
// NotFound if there is no such checkpoint.
absl::StatusOr<job::Submission> PlanResume(Service& service, const job::JobRecord& previous,
                                           std::optional<int64_t> step);
// Starts a planned run. Returns FailedPrecondition if another run of that name has started since.
absl::StatusOr<job::JobRecord> StartResumed(Service& service, const job::Submission& submission);

}  // namespace muster::jobs
