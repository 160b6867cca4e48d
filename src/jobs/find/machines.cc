#include "jobs/find/machines.h"

#include "platform/capabilities.h"

namespace muster::jobs {

std::vector<platform::Machine> MachinesOf(Service& service, const job::JobRecord& job,
                                          const std::vector<job::TaskRecord>& tasks) {
  const auto platform = service.platform(job.platform);  // fails if written by a later version
  if (!platform.ok()) return {};
  auto* inventory = platform::CapabilityOf<platform::MachineInventory>(**platform);
  return inventory == nullptr ? std::vector<platform::Machine>() : inventory->Machines(job, tasks);
}

}  // namespace muster::jobs
