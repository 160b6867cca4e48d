// Follows a running job: shows its tasks as they start, their merged output and the verdict.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "cli/context.h"
#include "cli/job/log_view.h"
#include "job/event_sink.h"

namespace muster::cli {

struct AttachOptions {
  // If true, the first Ctrl-C stops the job and the second kills it. If false, Ctrl-C detaches and
  // leaves the job running.
  bool owns_job = false;
  // Show the events of the job and of its tasks, besides their output.
  bool show_events = true;
  int64_t after_event = 0;  // skip events up to this sequence number
  // Show only the output of these; empty = all, including tasks added later.
  std::vector<cluster::TaskId> tasks;
  LogView::Options view;
};

// Follows the job until it ends and prints its verdict. `stream` may be positioned by the caller;
// null = from the start. Returns the exit code: kSuccess or kFailure by the verdict, or
// kInterrupted after Ctrl-C. Reports errors itself. Returns kSuccess early if standard output fails
// and the job is not owned.
int Attach(Context& context, const job::JobRecord& job, const AttachOptions& options,
           std::unique_ptr<supervise::LogStream> stream = nullptr);

// Returns the error for --quiet without -d.
absl::Status QuietNeedsDetach();

// Prints the verdict of a finished job, and what it trained, to standard error.
void PrintVerdict(Context& context, const job::JobRecord& job);
// Returns kSuccess if the job succeeded, else kFailure. REQUIRES: the job is finished.
int ExitCodeOf(const job::JobRecord& job);

}  // namespace muster::cli
