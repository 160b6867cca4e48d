// The training tasks that are connected to a parameter server, by rank. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "cluster/task_id.h"
#include "train/wire/outbox.h"

namespace muster::train {

class Members {
 public:
  // `tasks`: the training tasks, the chief first. A task's rank is its index in this list.
  explicit Members(std::vector<cluster::TaskId> tasks)
      : tasks_(std::move(tasks)), entries_(tasks_.size()) {}

  int size() const { return static_cast<int>(tasks_.size()); }
  const cluster::TaskId& task(int rank) const { return tasks_[rank]; }

  // Registers the peer under `rank`. A later attempt of the task, or the same process again,
  // replaces an earlier stream: that one is cancelled and must leave first. Returns AlreadyExists
  // if another process holds the rank and is not an earlier attempt; Unavailable if the earlier
  // stream does not end.
  absl::Status Join(int rank, const wire::Peer& peer, std::shared_ptr<wire::Outbox> outbox);
  // Unregisters the stream that joined with `outbox`, unless it was replaced.
  void Leave(int rank, const wire::Outbox* outbox);

  // Sends to the task of that rank, or drops the message if it is not connected.
  void Send(int rank, wire::Outgoing message);
  void SendToAll(const wire::Frame& frame);
  // Cancels every stream.
  void Disconnect();

  bool IsConnected(int rank) const;
  int connected() const;

 private:
  struct Entry {
    wire::Peer peer;
    std::shared_ptr<wire::Outbox> outbox;  // null: not connected
  };

  const std::vector<cluster::TaskId> tasks_;
  mutable absl::Mutex mutex_;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::train
