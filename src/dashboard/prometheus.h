// The state of jobs in the text format of Prometheus.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "jobs/service.h"

namespace muster::dashboard {

// Returns the number of jobs in each state, and the progress and the tasks of unfinished jobs.
absl::StatusOr<std::string> PrometheusText(jobs::Service& service);

}  // namespace muster::dashboard
