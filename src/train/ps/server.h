// A parameter server: holds the shard that the chief assigns, applies gradients, sends values, and
// ends when the chief finishes the job.
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

// States, as the chief's requests change them:
//
//    empty ──PREPARE──> assigning ──ASSIGN*, ACTIVATE──> active ──FINISH──> finished
//                           ^                              │
//                           └───────PREPARE, new generation┘
//
// Tasks join only an active server. Thread-safe: Serve() runs on one thread per stream.
class ParameterServer {
 public:
  struct Options {
    cluster::TaskId self;
    std::vector<cluster::TaskId> training_tasks;  // the chief first
    std::string cluster;  // TF_CONFIG's cluster; must be the same in every task
    std::function<void(const std::string&)> log;
    std::function<void()> on_finish;                    // called on FINISH; may be empty
    absl::Duration report_interval = absl::Minutes(1);  // of the log line that no task is connected
  };
  explicit ParameterServer(Options options);
  ~ParameterServer();

  // Serves one stream until it ends; a StreamHandler for Transport::Listen. A caller of another
  // cluster is refused before any message is received. On a control stream only the chief may send
  // requests other than STATUS.
  void Serve(wire::Connection& connection, const wire::Caller& caller);

  // Waits for FINISH, then up to `grace` for the tasks to leave. If no task is connected for
  // `timeout`, returns Unavailable if one was connected before, else DeadlineExceeded.
  absl::Status Run(absl::Duration timeout, absl::Duration grace);

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
