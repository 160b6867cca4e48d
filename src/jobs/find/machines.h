// The machines on which a job runs.
#pragma once

#include <vector>

#include "job/event_sink.h"
#include "jobs/service.h"
#include "platform/machine.h"

namespace muster::jobs {

// Returns the machines of the job's tasks, as far as its platform knows them. Empty if no task has
// a machine yet, or if the platform has no MachineInventory.
std::vector<platform::Machine> MachinesOf(Service& service, const job::JobRecord& job,
                                          const std::vector<job::TaskRecord>& tasks);

}  // namespace muster::jobs
