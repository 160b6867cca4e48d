// Starts the user's programs in images without Muster: muster-agent is sent to the bucket, and a
// shell script in the container copies it from the mounted bucket, verifies it and executes it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "job/job_spec.h"
#include "storage/storage.h"

namespace muster::vertex {

// Returns true if the role runs the built-in trainer, whose image contains all of Muster. The other
// roles are started by muster-agent.
bool RunsTrainer(const job::RoleSpec& role);
bool NeedsAgent(const job::JobSpec& spec);

// Returns the path of muster-agent, given that of this program. Returns NotFound if it is not
// installed, or FailedPrecondition if it cannot run on the machines of Vertex AI.
absl::StatusOr<std::string> FindAgent(const std::string& muster);

// Sends the program, named by its content, unless the bucket has it and `again` is false. Returns
// its SHA-256.
absl::StatusOr<std::string> SendAgent(storage::Storage& storage, const std::string& bucket,
                                      const std::string& path, bool again);

// The command line of a container that executes `muster-agent vertex-task ARGUMENTS…`.
struct ContainerCommand {
  std::vector<std::string> command;
  std::vector<std::string> args;
};
ContainerCommand StartByAgent(const std::string& bucket, const std::string& sha256,
                              const std::vector<std::string>& arguments);

}  // namespace muster::vertex
