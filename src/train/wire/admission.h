// Admission control of a listening task: admits tasks of the same job, up to a number of streams.
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

// Thread-safe. Permits may outlive it.
class Admission {
 public:
  struct Options {
    cluster::TaskId self;
    std::vector<cluster::TaskId> tasks;  // that may connect, by rank
    std::string cluster;                 // must be the same in every task
    std::function<void(const std::string&)> log;
  };
  explicit Admission(Options options);

  // Held by one stream, which counts against the limit until the permit is destroyed.
  struct Permit {
    int rank = 0;
    std::shared_ptr<void> slot;
  };
  // Decides by the hello alone. Returns InvalidArgument if it is not a HELLO; FailedPrecondition,
  // without naming this cluster, if the caller is of another cluster; NotFound if it is not one of
  // the tasks; Unavailable if too many streams are open.
  absl::StatusOr<Permit> Admit(const Caller& caller);

 private:
  void LogRefusal(const std::string& line);

  const Options options_;
  const std::string cluster_digest_;
  const std::shared_ptr<int> streams_;  // its use_count() is the number of streams
  absl::Mutex mutex_;
  absl::Time next_log_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

// Returns an ERROR frame for a refused caller or a failed request.
Outgoing ErrorOf(const absl::Status& status);
// Sends `status` as ERROR. Cancels the stream if the caller does not receive it within seconds.
void Refuse(Connection& connection, const absl::Status& status);
// Returns the error in a frame of kind ERROR.
absl::Status StatusOf(const Frame& frame);

}  // namespace muster::train::wire
