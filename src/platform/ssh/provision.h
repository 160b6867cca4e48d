// Sets up hosts before a job starts: copies the job's files, and detects problems that would
// prevent it from running.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "job/submission.h"
#include "platform/ssh/launch.h"
#include "platform/ssh/setup_client.h"
#include "worktree/version.h"

namespace muster::ssh {

struct ProvisionOptions {
  platform::AgentProgram agent;
  std::string home;  // Muster's home on this machine, which is never sent
  // Reports slow steps and warnings. Called from any thread.
  std::function<void(const std::string&)> notice;
  // Returns true to give up with Cancelled. Called from any thread.
  std::function<bool()> interrupted;
};

// Sets up all hosts in parallel and fills in their folders, trainers and CPU counts in
// `assignment`. An error lists every host that failed. Leaves nothing running on the hosts.
absl::Status ProvisionHosts(const job::Submission& submission, job::HostAssignment& assignment,
                            const ProvisionOptions& options);

// Changes to the working directory of a job on its hosts.
struct WorkEdit {
  std::vector<worktree::WorkFile> files;  // to write, hashed
  std::vector<std::string> removed;       // paths

  bool empty() const { return files.empty() && removed.empty(); }
};

// Returns the changes that turn one version of a working directory into another.
WorkEdit EditBetween(const worktree::Version& before, const worktree::Version& after);

// Sends the `train` section and the edited files of a changed job to its hosts. Tasks read them
// when they restart. Files that tasks wrote stay. An error lists every host that failed; `touched`
// is set if others may have been changed.
absl::Status SendChanges(const job::Submission& submission, job::HostAssignment assignment,
                         const WorkEdit& edit, const ProvisionOptions& options, bool& touched);

struct HostFinding {
  std::string host;
  absl::Status status;
  std::string detail;
};

// Returns the state of each host and, last, of the paths between them. Installs the agent program
// and changes nothing else there.
std::vector<HostFinding> Examine(const std::vector<job::HostSpec>& hosts,
                                 const platform::AgentProgram& agent);

// Returns the address that ssh connects to according to its configuration.
absl::StatusOr<std::string> PeerAddress(const job::HostSpec& host);

}  // namespace muster::ssh
