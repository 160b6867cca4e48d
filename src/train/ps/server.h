// A parameter server: keeps the part of the model that the chief gives it, takes gradients, hands
// out values, and ends when the chief says that the job is over.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cluster/task_id.h"
#include "train/ps/generation.h"
#include "train/ps/members.h"
#include "train/wire/admission.h"
#include "train/wire/transport.h"

namespace muster::train {

class ParameterServer {
 public:
  struct Options {
    TaskId self;
    std::vector<TaskId> training_tasks;  // the chief first
    std::string cluster;                 // every task must have the same
    std::function<void(const std::string&)> log;
    std::function<void()> on_finish;                    // the job is over; may be empty
    absl::Duration report_interval = absl::Minutes(1);  // how often it says that nobody is there
  };
  explicit ParameterServer(Options options);
  ~ParameterServer();

  // One stream, until it ends. For Transport::Listen. A caller of another cluster is refused before
  // anything is received from it. Only the chief's control streams may do more than ask for the
  // status.
  void Serve(wire::Connection& connection, const wire::Caller& caller);

  // Waits for FINISH, then for the tasks to leave, at most `grace`. Gives up when for `patience` no
  // task is connected: with Unavailable when there were some before, else with DeadlineExceeded.
  absl::Status Run(absl::Duration patience, absl::Duration grace);

 private:
  absl::Status ServeTask(wire::Connection& connection, int rank, const wire::Frame& hello);
  absl::Status ServeControl(wire::Connection& connection, bool is_chief);
  absl::Status HandleTask(int rank, wire::Incoming message, Generation& generation);
  absl::StatusOr<wire::Outgoing> HandleControl(const wire::Incoming& message, bool is_chief);
  absl::StatusOr<wire::Outgoing> Prepare(const wire::Frame& frame);
  absl::StatusOr<wire::Outgoing> Assign(const wire::Incoming& message);
  absl::StatusOr<wire::Outgoing> Read(const wire::Frame& frame);
  wire::Outgoing Status();
  void Finish();
  bool AwaitFinish(absl::Duration timeout);
  std::shared_ptr<Generation> generation() const;
  bool finished() const;
  bool IsFinished() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return finished_; }

  const Options options_;
  wire::Admission admission_;
  Members members_;
  mutable absl::Mutex mutex_;
  std::shared_ptr<Generation> generation_ ABSL_GUARDED_BY(mutex_);
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::train
