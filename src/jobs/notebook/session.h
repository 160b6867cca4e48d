// Starts, finds and stops the notebook of a job on this machine.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/files/unique_fd.h"
#include "jobs/notebook/folder.h"

namespace muster::jobs {

struct RunningNotebook {
  std::string url;
  bool ready = false;  // Jupyter answers
  int pid = 0;         // of Jupyter; 0 = it is about to be started
};

// Returns the running notebook of a folder, or nullopt if there is none.
std::optional<RunningNotebook> FindRunningNotebook(const NotebookFolder& folder);
// Likewise, but waits until it is ready or has ended, at most `timeout`.
std::optional<RunningNotebook> AwaitRunningNotebook(const NotebookFolder& folder,
                                                    absl::Duration timeout);
// Stops the notebook and waits until none of its processes is left. Returns NotFound if it is not
// running, with how it ended if it ended by itself, or DeadlineExceeded.
absl::Status StopNotebook(const NotebookFolder& folder);
// Returns how the last notebook of the folder ended; "" if it was stopped or never ran.
std::string HowNotebookEnded(const NotebookFolder& folder);

// A notebook that this process has started. Not thread-safe.
class NotebookSession {
 public:
  struct Message {
    enum class Kind { kReady, kFailed, kEnded };
    Kind kind = Kind::kFailed;
    std::string text;  // the URL, or a sentence
    bool ok = false;   // kEnded: it was stopped, or ended by itself without an error
  };

  // Starts `program`, the muster binary, as the server of the notebook (jobs/notebook/server.h)
  // with the environment `env`. REQUIRES: the folder exists; start_lock() is held.
  static absl::StatusOr<NotebookSession> Start(const std::string& program,
                                               const NotebookFolder& folder,
                                               const NotebookLaunch& launch,
                                               const std::map<std::string, std::string>& env);

  int fd() const { return report_.get(); }  // readable when Read() has something
  // Returns the next message, or nullopt if none has arrived. The last one is kFailed or kEnded.
  std::optional<Message> Read();
  // Ends an attached notebook.
  void Stop(bool immediately);
  // Waits until the server process has exited, after the last message.
  void Join();

 private:
  NotebookSession(NotebookFolder folder, pid_t server, base::UniqueFd report)
      : folder_(std::move(folder)), server_(server), report_(std::move(report)) {}

  NotebookFolder folder_;
  pid_t server_;
  base::UniqueFd report_;
  std::string input_;
};

}  // namespace muster::jobs
