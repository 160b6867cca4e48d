// How the tasks of a job without parameter servers find each other.
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
  std::vector<TaskId> tasks;           // by rank
  std::vector<std::string> addresses;  // by rank, host:port
  // A private folder that all tasks share: they are on one machine, meet through a file in it and
  // use its loopback interface. Empty: each listens at its address, through `transport` alone.
  std::string folder;
  wire::Transport* transport = nullptr;
  wire::Frame hello;    // introduces this task
  std::string cluster;  // every task must have the same
  absl::Duration timeout = absl::Minutes(5);
  absl::Duration peer_timeout = absl::Minutes(30);  // of every collective of the group
  std::function<void(const std::string&)> log;
};

struct Meeting {
  std::shared_ptr<CollectiveNode> node;   // without a folder; the group ends before it
  c10::intrusive_ptr<c10d::Store> store;  // what any of the tasks can say to the others
  c10::intrusive_ptr<c10d::ProcessGroup> group;
};

// Waits for all tasks. DeadlineExceeded names those that did not come; Unavailable: one of them was
// lost again.
absl::StatusOr<Meeting> Meet(const RendezvousOptions& options);

}  // namespace muster::train
