// The training tasks that are connected to a parameter server, by rank. Thread-safe.
#pragma once

#include <memory>
#include <optional>
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
  // `tasks`: the training tasks, the chief first. A task's rank is its place among them.
  explicit Members(std::vector<TaskId> tasks) : tasks_(std::move(tasks)), entries_(tasks_.size()) {}

  int size() const { return static_cast<int>(tasks_.size()); }
  const TaskId& task(int rank) const { return tasks_[rank]; }
  std::optional<int> RankOf(const wire::Peer& peer) const;

  // Takes the peer's place. A later attempt of a task replaces an earlier one, whose stream is
  // ended; AlreadyExists when another process has the place and is not older.
  absl::Status Join(int rank, const wire::Peer& peer, std::shared_ptr<wire::Outbox> outbox);
  // False when the place was taken over meanwhile.
  bool Leave(int rank, const wire::Peer& peer);

  // To whoever has that rank; dropped when nobody does.
  void Send(int rank, wire::Outgoing message);
  void SendToAll(const wire::Frame& frame);
  // Ends every stream.
  void Disconnect();

  bool IsConnected(int rank) const;
  int connected() const;

 private:
  struct Entry {
    wire::Peer peer;
    std::shared_ptr<wire::Outbox> outbox;  // null: not connected
  };

  const std::vector<TaskId> tasks_;
  mutable absl::Mutex mutex_;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::train
