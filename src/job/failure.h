// The first-failure report: the task that failed first, the cause, its last output, and the tasks
// that ended as a consequence.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cluster/task_id.h"

namespace muster::job {

struct TaskFailure {
  cluster::TaskId task;
  int attempt = 0;
  absl::Time time;
  std::optional<int> exit_code;  // 128 + n for signal n; nullopt if it never started
  std::string cause;             // "exit code 1", "out of memory: …", "port in use: …"
  std::string advice;            // the remedy; "" = none is known
  std::vector<std::string> last_lines;
};

struct FailureReport {
  std::string summary;  // why the job failed, one line
  std::optional<TaskFailure> first;
  // Tasks that ended as a consequence: "worker:1 stopped by muster", "ps:0 exit code 1, 0.3 s
  // later".
  std::vector<std::string> victims;
  // The reason why the task that failed the job was not restarted: "worker:0: max_restarts (3)
  // exceeded". "" if the cause of the failure is the reason, or no single task failed the job.
  std::string not_restarted;
};

// Replaces bytes that are not UTF-8, which a task's last lines may contain, by U+FFFD.
std::string FailureToJson(const FailureReport& report);
// Returns InvalidArgument if the text is not a failure report.
absl::StatusOr<FailureReport> FailureFromJson(absl::string_view json);

}  // namespace muster::job
