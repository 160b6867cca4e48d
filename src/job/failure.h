// The first-failure report: which task failed first, why, its last words, and who fell with it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cluster/task_id.h"

namespace muster {

struct TaskFailure {
  TaskId task;
  int attempt = 0;
  absl::Time time;
  std::optional<int> exit_code;  // 128 + n for signal n; none when it never started
  std::string cause;             // "exit code 1", "out of memory: …", "port in use: …"
  std::string advice;            // what to do about it; "" = nothing better than reading the log
  std::vector<std::string> last_lines;
};

struct FailureReport {
  std::string summary;  // why the job failed, one line
  std::optional<TaskFailure> first;
  // Tasks that ended because of it: "worker:1 stopped by muster", "ps:0 exit code 1, 0.3 s later".
  std::vector<std::string> victims;
  // Why the task whose failure decided was not started again: "worker:0: max_restarts (3)
  // exceeded". "" when its cause says so, or no task decided.
  std::string not_restarted;
};

// Bytes that are not UTF-8, which a task's last lines may hold, become U+FFFD.
std::string FailureToJson(const FailureReport& report);
absl::StatusOr<FailureReport> FailureFromJson(absl::string_view json);

}  // namespace muster
