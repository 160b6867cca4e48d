// Reads what the tasks on this machine use, at intervals.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "cluster/task_id.h"
#include "process/tree.h"
#include "process/usage.h"
#include "supervise/usage/sample.h"

namespace muster::supervise {

// Attempts are sampled once per second in their first minute, then every five seconds. One snapshot
// of the machine's processes serves all tasks. Times are those of a clock that never goes
// backwards. Not thread-safe. REQUIRES: this process is a subreaper, and tasks are its children.
class Sampler {
 public:
  explicit Sampler(std::string job_id) : job_id_(std::move(job_id)) {}

  // Starts to sample an attempt, whose main process was just started.
  void Begin(const cluster::TaskId& task, int attempt, pid_t pid, absl::Time now);
  // Returns the last sample of an attempt, if there is anything to report. REQUIRES: the main
  // process has exited and was not waited for.
  std::optional<Sample> End(const cluster::TaskId& task, absl::Time now);

  // Returns the time of the next call of Take(); InfiniteFuture if no task runs.
  absl::Time next_timer() const { return attempts_.empty() ? absl::InfiniteFuture() : next_; }
  // Samples all tasks.
  std::vector<std::pair<cluster::TaskId, Sample>> Take(absl::Time now);

 private:
  struct Attempt {
    int number = 0;
    pid_t pid = 0;
    absl::Time started;
    absl::Time last_time;
    process::Usage last;
    process::UsageMeter meter;
    bool was_sampled = false;
  };
  // The task of a child of this process that is no main process: its parent has ended.
  struct Orphan {
    uint64_t start_ticks = 0;
    std::optional<cluster::TaskId> task;
    std::string attempt;
  };

  // Returns all processes of the running attempts, main processes first.
  std::map<cluster::TaskId, std::vector<process::ProcessInfo>> FindProcesses();
  std::optional<cluster::TaskId> TaskOf(const process::ProcessInfo& orphan,
                                        std::map<pid_t, Orphan>& orphans) const;

  const std::string job_id_;
  std::map<cluster::TaskId, Attempt> attempts_;
  std::map<pid_t, Orphan> orphans_;
  absl::Time next_ = absl::InfiniteFuture();
};

// Returns the sample of the time between two readings. REQUIRES: `interval` > 0.
Sample SampleBetween(const process::Usage& before, const process::Usage& after,
                     absl::Duration interval);

}  // namespace muster::supervise
