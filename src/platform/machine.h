// The machines on which the tasks of a job run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "job/event_sink.h"

namespace muster::platform {

// A machine as far as its platform knows it. An unknown field is "".
struct Machine {
  std::string name;
  std::string roles;     // of the job's tasks there: "chief, worker"
  std::string provider;  // "ssh", "gce", "Google Cloud", …
  std::string region;
  std::string size;       // a machine type, or its cores and memory
  std::string public_ip;  // the address at which it is reached from outside
  std::string status;
};

inline constexpr char kMachineConnected[] = "Connected";
inline constexpr char kMachineUnreachable[] = "Unreachable";
inline constexpr char kMachineReleased[] = "Released";  // no task of the job runs there any more

// Returns the machines of the tasks, by name, with roles and status. A task that has no machine yet
// is left out.
std::vector<Machine> MachinesOf(const std::vector<job::TaskRecord>& tasks);

// Returns the size of a machine without a type: "8 cpus", "8 cpus, 16GiB" if its memory is known.
std::string DescribeSize(int cpus, int64_t memory_bytes = 0);

}  // namespace muster::platform
