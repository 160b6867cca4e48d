// Stays with a running job: its tasks coming up, its merged output, its verdict.
#pragma once

#include <signal.h>

#include <vector>

#include "cli/context.h"
#include "cli/log_view.h"
#include "job/event_sink.h"

namespace muster::cli {

struct AttachOptions {
  // Ctrl-C once asks the job to stop, twice ends it now. Otherwise Ctrl-C only ends the watching.
  bool owns_job = false;
  // Show what the job and its tasks go through, besides their output.
  bool show_events = true;
  std::vector<TaskId> tasks;  // whose output is shown; empty = all, later ones too
  LogView::Options view;
};

// Holds back Ctrl-C from before a job is submitted until Attach() takes it: in between it would end
// the command and leave the job running.
class HeldInterrupts {
 public:
  HeldInterrupts();
  ~HeldInterrupts();
  HeldInterrupts(const HeldInterrupts&) = delete;
  HeldInterrupts& operator=(const HeldInterrupts&) = delete;

  // Whether one waits.
  static bool Any();

 private:
  sigset_t previous_{};
};

// Until the job ends. `stream` may have been moved to a place to begin at; null = from the start.
// Returns the exit code: that of the verdict, or kInterrupted.
int Attach(Context& context, const JobRecord& job, const AttachOptions& options,
           std::unique_ptr<LogStream> stream = nullptr);

}  // namespace muster::cli
