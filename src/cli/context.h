// What every command works with.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "cli/terminal.h"
#include "history/history.h"
#include "launch/platform.h"

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

class Context {
 public:
  // Reads MUSTER_HOME (default: ~/.local/share/muster), NO_COLOR, TERM and the working directory.
  static absl::StatusOr<std::unique_ptr<Context>> FromEnvironment();
  ~Context();

  const std::string& home() const { return home_; }
  const std::string& program() const { return program_; }
  // "" when it was deleted: CheckWorkingDir() comes first.
  const std::string& working_dir() const { return working_dir_; }
  // FailedPrecondition when the working directory does not exist any more.
  absl::Status CheckWorkingDir() const;
  Terminal& out() { return out_; }
  Terminal& err() { return err_; }

  // Opened at the first call. A damaged history is repaired, and that is said on err().
  absl::StatusOr<History*> history();
  // InvalidArgument for a name that no platform has.
  absl::StatusOr<Platform*> platform(const std::string& name);
  std::vector<std::string> platform_names() const {
    return {"local", "ssh", "kubernetes", "vertex"};
  }

  vertex::VertexPlatform& vertex();

  // Where the built-in trainer is: beside this program or in PATH. NotFound says what to do.
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
  absl::Mutex notice_mutex_;  // hosts are made ready in parallel
  std::unique_ptr<vertex::VertexPlatform> vertex_;
};

}  // namespace muster::cli
