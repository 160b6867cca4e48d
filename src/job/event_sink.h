// What a platform reports while a job runs, and to whom. launch produces it, history keeps it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cluster/task_id.h"
#include "job/states.h"
#include "process/identity.h"

namespace muster {

struct JobRecord {
  std::string id;
  std::string name;
  std::string platform;  // "local", …
  JobState state = JobState::kPending;
  std::string reason;  // one line: why it is in that state; "" = nothing to say
  absl::Time created;
  std::optional<absl::Time> started;
  std::optional<absl::Time> finished;
  std::string directory;  // of its files on this machine
  std::string model_dir;
  std::string resumed_from;  // the id of the job it continues; "" = none
  int tasks = 0;
  std::optional<ProcessIdentity> supervisor;  // who watches over it, on this machine
  std::string failure;  // the first-failure report as JSON (job/failure.h); "" = none
  bool operator==(const JobRecord&) const = default;
};

struct TaskRecord {
  TaskId id;
  TaskState state = TaskState::kPending;
  int attempt = 0;   // counts from 0
  int restarts = 0;  // never decreases while the job lives
  std::string host;
  std::string address;  // host:port that the others know it by
  int pid = 0;          // 0 = none
  std::string command;  // one line, quoted for a shell
  std::optional<absl::Time> started;
  std::optional<absl::Time> finished;
  std::optional<int> exit_code;  // 128 + n for signal n
  std::string reason;            // "exit code 1", "killed by SIGSEGV", …; "" = nothing to say
  bool operator==(const TaskRecord&) const = default;
};

struct Event {
  int64_t sequence = 0;  // given by the sink: 1, 2, … per job
  absl::Time time;
  std::string kind;     // "job", "task", "restart", "log", "stall", "update"
  std::string subject;  // the task, or "" for the job
  std::string message;  // for people, one line
};

// One turn of a supervisor: the rows as they are now, and what happened. Applied whole or not at
// all.
struct StateChange {
  JobRecord job;
  std::vector<TaskRecord> tasks;  // those that changed
  std::vector<TaskId> removed;    // tasks that the job no longer has
  std::vector<Event> events;
};

// Called from one thread. When Apply returns OK the change survives kill -9 and power loss.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual absl::Status Apply(const StateChange& change) = 0;
  // Called now and then while nothing changes: the place to notice that what was applied got lost.
  virtual absl::Status Refresh() { return absl::OkStatus(); }
};

}  // namespace muster
