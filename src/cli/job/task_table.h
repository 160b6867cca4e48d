// The tables of `muster show`: the tasks of a job and its machines.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/terminal/terminal.h"
#include "job/event_sink.h"
#include "jobs/results/samples.h"
#include "platform/machine.h"

namespace muster::cli {

// Returns a table with the columns TASK ID STATE HOST PID ADDRESS COMMAND STARTED RESTARTS NOTE,
// and CPU and MEM before NOTE if there is any `usage`: of a running task what it uses now, of an
// ended one the peaks. Omits COMMAND, HOST, STARTED and ID, in this order, on a narrow terminal.
std::string TaskTable(const Terminal& terminal, const std::string& job_id,
                      const std::vector<job::TaskRecord>& tasks, absl::Time now,
                      const std::map<cluster::TaskId, jobs::TaskUsage>& usage = {});

// Returns a table with the columns MACHINE ROLE PROVIDER REGION SIZE PUBLIC IP STATUS. Omits SIZE,
// REGION and PROVIDER, in this order, on a narrow terminal.
std::string MachineTable(const Terminal& terminal, const std::vector<platform::Machine>& machines);

}  // namespace muster::cli
