// How the tasks of a job without parameter servers find each other.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cluster/task_id.h"

namespace c10d {
class ProcessGroup;
class Store;
}  // namespace c10d

namespace muster::train {

struct RendezvousOptions {
  int rank = 0;
  std::vector<TaskId> tasks;           // by rank
  std::vector<std::string> addresses;  // by rank, host:port
  // A private folder that all tasks share: they meet through a file in it. Empty: they meet at the
  // address of rank 0.
  std::string folder;
  absl::Duration timeout = absl::Minutes(5);
  absl::Duration peer_timeout = absl::Minutes(30);  // of every collective of the group
  std::function<void(const std::string&)> log;
};

struct Meeting {
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  c10::intrusive_ptr<c10d::Store> store;  // what any of the tasks can say to the others
};

// Waits for all tasks. DeadlineExceeded names those that did not come; Unavailable: one of them was
// lost again.
absl::StatusOr<Meeting> Meet(const RendezvousOptions& options);

}  // namespace muster::train
