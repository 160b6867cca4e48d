// Connection to a host that is set up for a job.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/files/unique_fd.h"
#include "job/host_spec.h"
#include "platform/agent_program.h"
#include "platform/ssh/command.h"
#include "platform/ssh/wire.h"
#include "worktree/worktree.h"

namespace muster::ssh {

// Returns the path of the agent program on a host, as an expression for its shell.
std::string RemotePath(const platform::AgentProgram& agent);

// Client of setup_server.h: one request at a time, except for pieces of files. All methods block.
// Not thread-safe.
class SetupClient {
 public:
  // Connects, and installs the agent program if the host has none or another one. Retries
  // Unavailable for a few seconds: sshd refuses some of many simultaneous logins. This and all
  // later calls poll `interrupted` while they wait and return Cancelled once it returns true.
  static absl::StatusOr<std::unique_ptr<SetupClient>> Open(
      const job::HostSpec& host, const platform::AgentProgram& agent,
      const std::function<bool()>& interrupted);
  ~SetupClient();

  // Sends a request and returns the answer, or the error that the host reports. Returns Unavailable
  // if the connection is lost.
  absl::StatusOr<Json> Call(const Json& head, absl::string_view body = {},
                            absl::Duration timeout = absl::Minutes(2));
  // Sends a file that Call({"op", "missing"}) listed. Returns Aborted if the file has changed since
  // it was hashed. Errors of the host are reported by a later call.
  absl::Status SendFile(const std::string& path, const worktree::WorkFile& file);

  const job::HostSpec& host() const { return host_; }

 private:
  enum class Found { kAgent, kNone };

  SetupClient(job::HostSpec host, Sharing sharing, std::function<bool()> interrupted)
      : host_(std::move(host)), sharing_(sharing), interrupted_(std::move(interrupted)) {}
  absl::Status TryToOpen(const platform::AgentProgram& agent);
  absl::StatusOr<Found> Begin(const platform::AgentProgram& agent);
  absl::Status Install(const platform::AgentProgram& agent);
  absl::Status Start(const std::string& command, int input);
  absl::Status Write(absl::string_view bytes, absl::Time deadline);
  absl::StatusOr<std::string> Read(absl::Time deadline);
  absl::StatusOr<Json> Answer(absl::Time deadline);
  // Waits until `fd` is ready for `events`. Returns Unavailable with `too_late` after `deadline`.
  absl::Status Wait(int fd, short events, absl::Time deadline, absl::string_view too_late) const;
  // Waits until at most `outstanding` answers to pieces are missing.
  absl::Status Settle(int outstanding);
  // Returns the reason why ssh has ended.
  absl::Status ExitReason();
  // Kills ssh if it still runs.
  void End();

  const job::HostSpec host_;
  const Sharing sharing_;
  const std::function<bool()> interrupted_;
  pid_t pid_ = 0;
  base::UniqueFd to_;
  base::UniqueFd from_;
  base::UniqueFd stderr_;  // standard error of ssh
  Decoder decoder_;
  int outstanding_ = 0;  // unanswered pieces of files
};

}  // namespace muster::ssh
