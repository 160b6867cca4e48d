// Decides which callers a listening task serves: the other tasks of its job, and not too many
// streams.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cluster/task_id.h"
#include "train/wire/transport.h"

namespace muster::train::wire {

// Thread-safe. Passes may outlive it.
class Admission {
 public:
  struct Options {
    TaskId self;
    std::vector<TaskId> tasks;  // those that may call, by rank
    std::string cluster;        // every task must have the same
    std::function<void(const std::string&)> log;
  };
  explicit Admission(Options options);

  // One stream's; the stream counts until it is destroyed.
  struct Pass {
    int rank = 0;
    std::shared_ptr<void> slot;
  };
  // Judges by the hello alone. FailedPrecondition: of another cluster; it is not told which one
  // this is. NotFound: not one of the tasks. Unavailable: too many streams. InvalidArgument: not a
  // HELLO.
  absl::StatusOr<Pass> Admit(const Caller& caller);

 private:
  void LogRefusal(const std::string& line);

  const Options options_;
  const std::string cluster_digest_;
  const std::shared_ptr<int> streams_;  // counts by its owners
  absl::Mutex mutex_;
  absl::Time next_log_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

// ERROR frame for a refused caller or a failed request.
Outgoing ErrorOf(const absl::Status& status);
// Sends it, and ends the stream of a caller that does not take it within seconds.
void Refuse(Connection& connection, const absl::Status& status);
// The error that a frame of kind ERROR carries.
absl::Status StatusOf(const Frame& frame);

}  // namespace muster::train::wire
