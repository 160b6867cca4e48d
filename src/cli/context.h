// The environment of a command: directories, standard streams, history and platforms.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "cli/terminal.h"
#include "history/history.h"
#include "platform/platform.h"

namespace muster::vertex {
class VertexPlatform;
}  // namespace muster::vertex

namespace muster::cli {

// Exit codes, listed in docs/cli.md.
enum ExitCode : int {
  kSuccess = 0,
  kFailure = 1,  // the job failed, or the command could not do its work
  kUsage = 2,    // wrong usage or an invalid file
  kInterrupted = 130,
};

// Owns the history and the platforms of one invocation. Not thread-safe.
class Context {
 public:
  // Reads MUSTER_HOME (default: $XDG_DATA_HOME/muster, else ~/.local/share/muster), NO_COLOR, TERM,
  // the locale and the working directory. Returns FailedPrecondition if no home can be determined.
  static absl::StatusOr<std::unique_ptr<Context>> FromEnvironment();
  ~Context();

  const std::string& home() const { return home_; }
  const std::string& program() const { return program_; }
  // Returns "" if the working directory was deleted; call CheckWorkingDir() first.
  const std::string& working_dir() const { return working_dir_; }
  // Returns FailedPrecondition if the working directory was deleted.
  absl::Status CheckWorkingDir() const;
  Terminal& out() { return out_; }
  Terminal& err() { return err_; }

  // Opens the history at the first call. Owned by this. A damaged history is repaired, with a
  // notice on err().
  absl::StatusOr<History*> history();
  // Returns the platform of that name, created at the first call and owned by this, or
  // InvalidArgument if there is none.
  absl::StatusOr<Platform*> platform(const std::string& name);
  std::vector<std::string> platform_names() const {
    return {"local", "ssh", "kubernetes", "vertex"};
  }

  vertex::VertexPlatform& vertex();

  // Returns the path of muster-trainer, next to this program or in PATH, or NotFound with advice.
  absl::StatusOr<std::string> FindTrainer() const;

 private:
  Context();

  std::string home_;
  std::string program_;
  std::string working_dir_;
  Terminal out_;
  Terminal err_;
  std::unique_ptr<History> history_;
  std::unique_ptr<Platform> local_;
  std::unique_ptr<Platform> kubernetes_;
  std::unique_ptr<Platform> ssh_;
  absl::Mutex notice_mutex_;  // serializes notices of SSH hosts, which are provisioned in parallel
  std::unique_ptr<vertex::VertexPlatform> vertex_;
};

}  // namespace muster::cli
