// Serves the dashboard from a command.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cli/context.h"
#include "dashboard/dashboard.h"

namespace muster::cli {

// Starts the dashboard with services like that of `context`, prints its link, and prints a new one
// whenever a link has been used. `job` is the job that the link opens; "" = none.
absl::StatusOr<std::unique_ptr<dashboard::Dashboard>> StartDashboard(
    Context& context, dashboard::DashboardOptions options, const std::string& job);

}  // namespace muster::cli
