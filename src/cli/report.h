// Describes jobs and tasks, for people and as JSON.
#pragma once

#include <string>
#include <vector>

#include "cli/terminal.h"
#include "job/event_sink.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

// Returns the name of the state, coloured if `terminal` supports it.
std::string PaintState(const Terminal& terminal, JobState state);
std::string PaintState(const Terminal& terminal, TaskState state);

// Returns a table with the columns TASK STATE HOST PID ADDRESS COMMAND STARTED RESTARTS NOTE. Omits
// HOST, COMMAND and STARTED, in this order, on a narrow terminal.
std::string TaskTable(const Terminal& terminal, const std::vector<TaskRecord>& tasks,
                      absl::Time now);

// Returns a table of the machines of a job on SSH hosts: MACHINE ROLE ADDRESS STATUS.
std::string HostTable(const Terminal& terminal, const std::vector<TaskRecord>& tasks);

// Returns the outcome of a finished job. For a failed job, includes the first failure, its cause
// and the tasks that failed because of it. Ends with a newline.
std::string Verdict(const Terminal& terminal, const JobRecord& job);

// Absent values are null; attempts count from 1.
nlohmann::json JobToJson(const JobRecord& job);
nlohmann::json TaskToJson(const TaskRecord& task);

}  // namespace muster::cli
