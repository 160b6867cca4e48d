// Jobs as the JSON of docs/dashboard.openapi.yaml.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "job/event_sink.h"
#include "jobs/results/notes.h"
#include "jobs/results/samples.h"
#include "jobs/service.h"
#include "nlohmann/json.hpp"

namespace muster::dashboard {

// Returns a JobSummary. Reads the progress files of a job that has started.
nlohmann::json SummaryOf(jobs::Service& service, const job::JobRecord& job,
                         const jobs::Notes& notes);
// Returns a JobDetails.
absl::StatusOr<nlohmann::json> DetailsOf(jobs::Service& service, const job::JobRecord& job,
                                         const jobs::Notes& notes);
// Returns the TaskSamples of every task.
nlohmann::json SamplesOf(const std::vector<jobs::TaskSamples>& samples);

}  // namespace muster::dashboard
