// Sets up hosts before a job starts: copies what the job needs, and finds what would keep it from
// running.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "job/submission.h"
#include "platform/ssh/launch.h"
#include "platform/ssh/setup_client.h"

namespace muster::ssh {

struct ProvisionOptions {
  AgentProgram agent;
  std::string home;  // Muster's home on this machine, which is never sent
  // Reports slow steps and oddities. Called from any thread.
  std::function<void(const std::string&)> notice;
  // Returns true to give up with Cancelled. Called from any thread.
  std::function<bool()> interrupted;
};

// Sets up all hosts in parallel and fills in their folders, trainers and CPU counts in
// `assignment`. An error lists every host that failed. Leaves nothing running on the hosts.
absl::Status ProvisionHosts(const Submission& submission, HostAssignment& assignment,
                            const ProvisionOptions& options);

// Sends the `train` section of a changed job to its hosts. The trainer reads it when it restarts.
absl::Status SendTrainSection(const Submission& submission, HostAssignment assignment,
                              const ProvisionOptions& options);

struct HostFinding {
  std::string host;
  absl::Status status;
  std::string detail;
};

// Returns the state of each host and, last, of the paths between them. Installs the agent program
// and changes nothing else there.
std::vector<HostFinding> Examine(const std::vector<HostSpec>& hosts, const AgentProgram& agent);

// Returns the address that ssh connects to according to its configuration.
absl::StatusOr<std::string> PeerAddress(const HostSpec& host);

}  // namespace muster::ssh
