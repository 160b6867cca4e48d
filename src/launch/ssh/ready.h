// Makes hosts ready for a job, before it starts: what it needs is brought there, and what would
// keep it from running is found.
#pragma once

#include <functional>
#include <string>

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
};

// Fills in what is where. All hosts at once; an error names every host that has one. Nothing runs
// there afterwards.
absl::Status MakeReady(const Submission& submission, JobPlace& place, const ReadyOptions& options);

// The address that ssh connects to, as its configuration has it.
absl::StatusOr<std::string> PeerAddress(const HostSpec& host);

}  // namespace muster::ssh
