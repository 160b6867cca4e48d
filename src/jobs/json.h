// Jobs as JSON, for clients: the output of `muster jobs --json` and `muster show --json`.
// Absent values are null; attempts count from 1; times are RFC 3339 in UTC.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "job/event_sink.h"
#include "jobs/results/progress.h"
#include "nlohmann/json.hpp"
#include "platform/machine.h"

namespace muster::jobs {

nlohmann::json JobToJson(const job::JobRecord& job);
nlohmann::json TaskToJson(const std::string& job_id, const job::TaskRecord& task);
nlohmann::json MachineToJson(const platform::Machine& machine);
nlohmann::json EventToJson(const job::Event& event);
nlohmann::json ProgressToJson(const Progress& progress);

struct JobDetails {
  job::JobRecord job;
  std::optional<Progress> progress;
  std::vector<job::TaskRecord> tasks;
  std::vector<platform::Machine> machines;
  std::vector<job::Event> events;
};

// Returns the members of JobToJson() and, in addition, "progress", "tasks", "machines" and
// "events".
nlohmann::json JobDetailsToJson(const JobDetails& details);

}  // namespace muster::jobs
