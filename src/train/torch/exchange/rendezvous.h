// Rendezvous of the tasks of a job without parameter servers.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cluster/task_id.h"
#include "train/collective/node.h"
#include "train/wire/transport.h"

namespace c10d {
class ProcessGroup;
class Store;
}  // namespace c10d

namespace muster::train {

struct RendezvousOptions {
  int rank = 0;
  std::vector<cluster::TaskId> tasks;  // by rank
  std::vector<std::string> addresses;  // by rank, host:port
  // A private folder shared by all tasks, which are on one machine: they find each other through a
  // file in it and use the loopback interface. Empty: each task listens at its address, through
  // `transport`.
  std::string folder;
  wire::Transport* transport = nullptr;
  wire::Frame hello;    // identifies this task
  std::string cluster;  // must be the same in every task
  absl::Duration timeout = absl::Minutes(5);
  absl::Duration peer_timeout = absl::Minutes(30);  // of every collective of the group
  std::function<void(const std::string&)> log;
};

struct RendezvousResult {
  std::shared_ptr<CollectiveNode> node;   // null with a folder; must outlive `group`
  c10::intrusive_ptr<c10d::Store> store;  // shared key-value store of the tasks
  c10::intrusive_ptr<c10d::ProcessGroup> group;
};

// Waits for all tasks and connects them. Returns DeadlineExceeded, naming the missing tasks, after
// `timeout`; Unavailable if a task was lost meanwhile.
absl::StatusOr<RendezvousResult> Rendezvous(const RendezvousOptions& options);

}  // namespace muster::train
