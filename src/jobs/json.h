// Jobs as JSON, for clients: the output of `muster jobs --json` and `muster show --json`.
// Absent values are null; attempts count from 1; times are RFC 3339 in UTC.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "job/event_sink.h"
#include "jobs/results/progress.h"
#include "jobs/results/samples.h"
#include "nlohmann/json.hpp"
#include "platform/machine.h"

namespace muster::jobs {

nlohmann::json JobToJson(const job::JobRecord& job);
nlohmann::json TaskToJson(const std::string& job_id, const job::TaskRecord& task);
nlohmann::json MachineToJson(const platform::Machine& machine);
nlohmann::json EventToJson(const job::Event& event);
nlohmann::json ProgressToJson(const Progress& progress);
// Returns {"current": …, "mean": …, "peak": …}, each an object with a member per quantity.
nlohmann::json UsageToJson(const TaskUsage& usage);
// Returns a list with an object per task, for charts: a list per column, all of the same length.
// Unlike elsewhere, times are seconds since 1970.
//   {"task": "worker:0", "time": […], "interval": […], "attempt": […],
//    "cpu_cores": {"mean": […], "peak": […]}, "memory_bytes": {…}, "read_bytes_per_second": {…}, …}
nlohmann::json SamplesToJson(const std::vector<TaskSamples>& tasks);

struct JobDetails {
  job::JobRecord job;
  std::optional<Progress> progress;
  std::vector<job::TaskRecord> tasks;
  std::map<cluster::TaskId, TaskUsage> usage;
  std::vector<platform::Machine> machines;
  std::vector<job::Event> events;
};

// Returns the members of JobToJson() and, in addition, "progress", "tasks", "machines" and
// "events". A task has "usage" in addition to the members of TaskToJson().
nlohmann::json JobDetailsToJson(const JobDetails& details);

}  // namespace muster::jobs
