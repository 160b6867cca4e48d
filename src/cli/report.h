// How a job stands or ended, in words.
#pragma once

#include <string>
#include <vector>

#include "cli/terminal.h"
#include "job/event_sink.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

// The state in its colour.
std::string PaintState(const Terminal& terminal, JobState state);
std::string PaintState(const Terminal& terminal, TaskState state);

// TASK STATE HOST PID ADDRESS COMMAND STARTED RESTARTS NOTE; a narrow terminal gets fewer columns.
std::string TaskTable(const Terminal& terminal, const std::vector<TaskRecord>& tasks,
                      absl::Time now);

// The verdict of a finished job; for a failed one the first failure and its victims.
// The machines of a job on hosts.
std::string HostTable(const Terminal& terminal, const std::vector<TaskRecord>& tasks);

std::string Verdict(const Terminal& terminal, const JobRecord& job);

// Absent values are null; attempts count from 1.
nlohmann::json JobToJson(const JobRecord& job);
nlohmann::json TaskToJson(const TaskRecord& task);

}  // namespace muster::cli
