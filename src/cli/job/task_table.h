// The tables of `muster show`: the tasks of a job and its machines.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/terminal/terminal.h"
#include "job/event_sink.h"
#include "platform/machine.h"

namespace muster::cli {

// Returns a table with the columns TASK ID STATE HOST PID ADDRESS COMMAND STARTED RESTARTS NOTE.
// Omits COMMAND, HOST, STARTED and ID, in this order, on a narrow terminal.
std::string TaskTable(const Terminal& terminal, const std::string& job_id,
                      const std::vector<job::TaskRecord>& tasks, absl::Time now);

// Returns a table with the columns MACHINE ROLE PROVIDER REGION SIZE PUBLIC IP STATUS. Omits SIZE,
// REGION and PROVIDER, in this order, on a narrow terminal.
std::string MachineTable(const Terminal& terminal, const std::vector<platform::Machine>& machines);

}  // namespace muster::cli
