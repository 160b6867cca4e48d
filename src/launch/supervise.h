// The processes around a supervisor: who starts it, and who cleans up when it is killed.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "job/event_sink.h"

namespace muster {

// The body of `muster supervise`. Forks: the parent waits, and when the supervisor is killed it
// ends every process of the job; the child becomes the supervisor. `report_fd` receives "ok\n" or
// the reason why the job cannot start, then is closed. Returns an exit code.
int Supervise(const std::string& job_dir, int report_fd,
              const std::function<absl::StatusOr<std::unique_ptr<EventSink>>()>& open_sink);

}  // namespace muster
