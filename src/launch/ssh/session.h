// A host that is asked one thing after the other, before a job starts there.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"
#include "job/host_spec.h"
#include "launch/ssh/command.h"
#include "launch/ssh/wire.h"
#include "launch/work_dir.h"

namespace muster::ssh {

// The program that hosts run, and by what they know whether they have it.
struct AgentProgram {
  std::string path;
  std::string sha256;
  int64_t size = 0;

  // NotFound when it is not installed beside muster.
  static absl::StatusOr<AgentProgram> Find(const std::string& muster);
  // Where a host keeps it, for its shell.
  std::string RemotePath() const;
};

// Blocks. Not thread-safe.
class Session {
 public:
  // Brings the agent program when the host has another one or none. Tries for a few seconds: a
  // server that many call at once turns some away.
  // Whenever it waits, then and later, it asks whether to give up: then Cancelled.
  static absl::StatusOr<std::unique_ptr<Session>> Open(const HostSpec& host,
                                                       const AgentProgram& agent,
                                                       const std::function<bool()>& interrupted);
  ~Session();

  // An answer, or the error that the host answers with. Unavailable when the host is gone.
  absl::StatusOr<Json> Call(const Json& head, absl::string_view body = {},
                            absl::Duration patience = absl::Minutes(2));
  // A file that Call({"op", "missing"}) named. Aborted when it is not (any more) what was hashed.
  // Whether the host took it is told by the next Call.
  absl::Status SendFile(const std::string& path, const WorkFile& file);

  const HostSpec& host() const { return host_; }

 private:
  enum class Found { kAgent, kNone };

  Session(HostSpec host, Sharing sharing, std::function<bool()> interrupted)
      : host_(std::move(host)), sharing_(sharing), interrupted_(std::move(interrupted)) {}
  absl::Status TryToOpen(const AgentProgram& agent);
  absl::StatusOr<Found> Begin(const AgentProgram& agent);
  absl::Status Bring(const AgentProgram& agent);
  absl::Status Start(const std::string& command, int input);
  absl::Status Write(absl::string_view bytes, absl::Time deadline);
  absl::StatusOr<std::string> Read(absl::Time deadline);
  absl::StatusOr<Json> Answer(absl::Time deadline);
  // Until something may have happened to the descriptor.
  absl::Status Wait(int fd, short events, absl::Time deadline, absl::string_view too_late) const;
  absl::Status Settle(int outstanding);  // waits until no more answers than that are to come
  absl::Status Ended();
  void End();

  const HostSpec host_;
  const Sharing sharing_;
  const std::function<bool()> interrupted_;
  pid_t pid_ = 0;
  UniqueFd to_;
  UniqueFd from_;
  UniqueFd said_;  // what ssh writes to its standard error
  Decoder decoder_;
  int outstanding_ = 0;  // answers to pieces of files
};

}  // namespace muster::ssh
