// The processes around a supervisor: the guard that starts it, and cleans up if it is killed.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "job/event_sink.h"
#include "supervise/runner.h"

namespace muster::supervise {

using SinkFactory = std::function<absl::StatusOr<std::unique_ptr<job::EventSink>>()>;

// Runs `muster supervise`. Forks: the child becomes the supervisor; the parent waits, and kills
// every process of the job if the supervisor is killed. Writes "ok\n", or the reason why the job
// cannot start, to `report_fd` and closes it. Returns the exit code, in both processes.
int Supervise(const std::string& job_dir, int report_fd, const SinkFactory& open_sink,
              const RunnerFactory& make_runner);

}  // namespace muster::supervise
