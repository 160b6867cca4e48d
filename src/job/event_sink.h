// The records and events of a job, and the interface that receives them. `supervise` and `platform`
// report them; `history` stores them.
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

namespace muster::job {

struct JobRecord {
  std::string id;
  std::string name;
  std::string platform;  // "local", …
  JobState state = JobState::kPending;
  std::string reason;  // one line: the cause of the state; "" = none
  absl::Time created;
  std::optional<absl::Time> started;
  std::optional<absl::Time> finished;
  std::string directory;  // folder of its files on this machine
  std::string model_dir;
  std::string resumed_from;  // the id of the job it continues; "" = none
  int tasks = 0;
  std::optional<process::ProcessIdentity> supervisor;  // its supervisor, if it runs on this machine
  std::string failure;  // the first-failure report as JSON (job/failure.h); "" = none
  bool operator==(const JobRecord&) const = default;
};

struct TaskRecord {
  cluster::TaskId id;
  TaskState state = TaskState::kPending;
  int attempt = 0;   // counts from 0
  int restarts = 0;  // never decreases during the job
  std::string host;
  std::string address;  // host:port at which other tasks reach it
  int pid = 0;          // 0 = none
  std::string command;  // one line, quoted for a shell
  std::optional<absl::Time> started;
  std::optional<absl::Time> finished;
  std::optional<int> exit_code;  // 128 + n for signal n
  std::string reason;            // "exit code 1", "killed by SIGSEGV", …; "" = none
  bool operator==(const TaskRecord&) const = default;
};

struct Event {
  int64_t sequence = 0;  // assigned by the sink: 1, 2, … per job
  absl::Time time;
  std::string kind;     // "job", "task", "restart", "log", "stall", "update"
  std::string subject;  // the task, or "" for the job
  std::string message;  // for people, one line
};

// One change of a job: the new records and the events that led to them. Applied atomically.
struct StateChange {
  JobRecord job;
  std::vector<TaskRecord> tasks;         // those that changed
  std::vector<cluster::TaskId> removed;  // tasks that the job no longer has
  std::vector<Event> events;
};

// Stores the changes of jobs. Called from one thread.
class EventSink {
 public:
  virtual ~EventSink() = default;
  // If it returns OK, the change survives kill -9. Implementations document power loss.
  virtual absl::Status Apply(const StateChange& change) = 0;
  // Called periodically while no change occurs, so that the sink can detect and repair the loss of
  // earlier changes.
  virtual absl::Status Refresh() { return absl::OkStatus(); }
};

}  // namespace muster::job
