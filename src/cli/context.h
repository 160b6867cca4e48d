// The environment of a command: directories, standard streams and the service of jobs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "cli/terminal/terminal.h"
#include "jobs/service.h"
#include "platform/registration.h"

namespace muster::cli {

// Exit codes, listed in docs/cli.md.
enum ExitCode : int {
  kSuccess = 0,
  kFailure = 1,  // the job failed, or the command failed
  kUsage = 2,    // wrong usage or an invalid file
  kInterrupted = 130,
};

// Owns the service of jobs and the platforms of one invocation. Not thread-safe.
class Context {
 public:
  // Reads MUSTER_HOME (default: $XDG_DATA_HOME/muster, else ~/.local/share/muster), NO_COLOR, TERM,
  // the locale and the working directory. Returns FailedPrecondition if no home can be determined.
  static absl::StatusOr<std::unique_ptr<Context>> FromEnvironment(
      std::vector<platform::Registration> platforms);

  const std::string& home() const { return home_; }
  const std::string& program() const { return program_; }
  // Returns "" if the working directory was deleted; call CheckWorkingDir() first.
  const std::string& working_dir() const { return working_dir_; }
  // Returns FailedPrecondition if the working directory was deleted.
  absl::Status CheckWorkingDir() const;
  Terminal& out() { return out_; }
  Terminal& err() { return err_; }

  jobs::Service& jobs() { return *jobs_; }
  platform::Registry& platforms() { return *platforms_; }
  // Returns another service with platforms of its own, for another thread. Thread-safe.
  jobs::OwnedService NewService();
  // Shows a message on standard error. Thread-safe.
  void Notify(const std::string& text);

 private:
  Context();

  std::string home_;
  std::string program_;
  std::string working_dir_;
  Terminal out_;
  Terminal err_;
  std::vector<platform::Registration> registrations_;
  absl::Mutex notice_mutex_;  // serializes notices, which come from any thread
  std::unique_ptr<platform::Registry> platforms_;
  std::unique_ptr<jobs::Service> jobs_;  // refers to *platforms_
};

}  // namespace muster::cli
