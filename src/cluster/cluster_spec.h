// The address of each task of a job: role -> [host:port], as in TensorFlow's ClusterSpec.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "cluster/task_id.h"

namespace muster::cluster {

// Roles are sorted by name and tasks by index, so that every task of a job writes the same bytes.
// Indices may have gaps (the sparse form). A value type.
class ClusterSpec {
 public:
  using Addresses = std::map<int, std::string>;  // index -> host:port

  void Set(const TaskId& task, std::string address);
  // Returns "" if the cluster does not contain the task.
  absl::string_view AddressOf(const TaskId& task) const;
  bool Contains(const TaskId& task) const { return !AddressOf(task).empty(); }
  const std::map<std::string, Addresses>& roles() const { return roles_; }
  // Returns the addresses of a role as "a:1,b:2", ordered by index; "" if it has none.
  std::string Hosts(absl::string_view role) const;
  int size() const;
  bool empty() const { return roles_.empty(); }
  bool operator==(const ClusterSpec&) const = default;

  // Returns the cluster without one role. Other tasks do not see the evaluator, for example.
  ClusterSpec Without(absl::string_view role) const;
  // Returns the sparse view of a task in a job with dynamic workers. A ps sees only itself. Any
  // other task sees itself, every ps and the chief (without which worker:0 would act as the chief).
  ClusterSpec SparseViewOf(const TaskId& task) const;

 private:
  std::map<std::string, Addresses> roles_;
};

}  // namespace muster::cluster
