// The program muster-agent, which Muster copies to the machines that run tasks.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace muster::platform {

// Copies are identified by hash and size.
struct AgentProgram {
  std::string path;
  std::string sha256;
  int64_t size = 0;
};

// Returns NotFound if muster-agent is not installed beside `muster`, the path of this program.
absl::StatusOr<AgentProgram> FindAgentProgram(const std::string& muster);

}  // namespace muster::platform
