// Makes hosts ready for a job, before it starts: what it needs is brought there, and what would
// keep it from running is found.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "launch/ssh/place.h"
#include "launch/ssh/session.h"
#include "launch/submission.h"

namespace muster::ssh {

struct ReadyOptions {
  AgentProgram agent;
  std::string home;  // Muster's on this machine, which is never sent
  // What takes a while, and what is odd, told from any thread.
  std::function<void(const std::string&)> notice;
  // Asked from any thread; then Cancelled.
  std::function<bool()> interrupted;
};

// Fills in what is where. All hosts at once; an error names every host that has one. Nothing runs
// there afterwards.
absl::Status MakeReady(const Submission& submission, JobPlace& place, const ReadyOptions& options);

// Of a job that runs: what the trainer reads when it starts again.
absl::Status SendTrainSection(const Submission& submission, JobPlace place,
                              const ReadyOptions& options);

struct HostFinding {
  std::string host;
  absl::Status status;
  std::string detail;
};

// What there is to know of hosts, and last whether they reach each other. Brings the agent there,
// and nothing else.
std::vector<HostFinding> Examine(const std::vector<HostSpec>& hosts, const AgentProgram& agent);

// The address that ssh connects to, as its configuration has it.
absl::StatusOr<std::string> PeerAddress(const HostSpec& host);

}  // namespace muster::ssh
