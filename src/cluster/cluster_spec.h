// Which address each task of a job has: role -> [host:port], TensorFlow's ClusterSpec.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "cluster/task_id.h"

namespace muster {

// Roles are kept sorted by name and tasks by index, so that every task of a job writes the same
// bytes. Indices may have gaps: that is the sparse form. Plain data.
class ClusterSpec {
 public:
  using Addresses = std::map<int, std::string>;  // index -> host:port

  void Set(const TaskId& task, std::string address);
  // "" when the cluster does not have that task.
  absl::string_view AddressOf(const TaskId& task) const;
  bool Contains(const TaskId& task) const { return !AddressOf(task).empty(); }
  const std::map<std::string, Addresses>& roles() const { return roles_; }
  // "a:1,b:2" of a role, in order of index; "" when there is none.
  std::string Hosts(absl::string_view role) const;
  int size() const;
  bool empty() const { return roles_.empty(); }
  bool operator==(const ClusterSpec&) const = default;

  // The cluster without one role: what the others see of an evaluator.
  ClusterSpec Without(absl::string_view role) const;
  // The sparse form that a task of a job with dynamic workers sees: a ps sees only itself, any
  // other task every ps, the chief (or worker:0 would take itself for it) and itself.
  ClusterSpec SparseViewOf(const TaskId& task) const;

 private:
  std::map<std::string, Addresses> roles_;
};

}  // namespace muster
