// Follows a running job: shows its tasks as they start, their merged output and the verdict.
#pragma once

#include <signal.h>

#include <vector>

#include "cli/context.h"
#include "cli/log_view.h"
#include "job/event_sink.h"

namespace muster::cli {

struct AttachOptions {
  // If true, the first Ctrl-C stops the job and the second kills it. If false, Ctrl-C detaches and
  // leaves the job running.
  bool owns_job = false;
  // Show the events of the job and of its tasks, besides their output.
  bool show_events = true;
  std::vector<TaskId> tasks;  // show only their output; empty = all, including tasks added later
  LogView::Options view;
};

// Blocks SIGINT in this thread, and in threads that it starts, for the lifetime of the object. A
// command holds one from before it submits a job until Attach() reads the signal: otherwise Ctrl-C
// in between would end the command and leave the job running.
class HeldInterrupts {
 public:
  HeldInterrupts();
  ~HeldInterrupts();
  HeldInterrupts(const HeldInterrupts&) = delete;
  HeldInterrupts& operator=(const HeldInterrupts&) = delete;

  // Returns whether a blocked SIGINT is pending.
  static bool Any();

 private:
  sigset_t previous_{};
};

// Follows the job until it ends. `stream` may be positioned by the caller; null = from the start.
// Returns the exit code: kSuccess or kFailure by the verdict, or kInterrupted after Ctrl-C. Reports
// errors itself. Returns kSuccess early if standard output fails and the job is not owned.
int Attach(Context& context, const JobRecord& job, const AttachOptions& options,
           std::unique_ptr<LogStream> stream = nullptr);

}  // namespace muster::cli
