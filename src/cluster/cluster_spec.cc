#include "cluster/cluster_spec.h"

#include <utility>

#include "absl/strings/str_join.h"

namespace muster::cluster {

void ClusterSpec::Set(const TaskId& task, std::string address) {
  roles_[task.role][task.index] = std::move(address);
}

absl::string_view ClusterSpec::AddressOf(const TaskId& task) const {
  const auto role = roles_.find(task.role);
  if (role == roles_.end()) return "";
  const auto address = role->second.find(task.index);
  return address == role->second.end() ? absl::string_view() : address->second;
}

std::string ClusterSpec::Hosts(absl::string_view role) const {
  const auto found = roles_.find(std::string(role));
  if (found == roles_.end()) return "";
  return absl::StrJoin(found->second, ",",
                       [](std::string* out, const auto& entry) { out->append(entry.second); });
}

int ClusterSpec::size() const {
  size_t tasks = 0;
  for (const auto& [role, addresses] : roles_) tasks += addresses.size();
  return static_cast<int>(tasks);
}

ClusterSpec ClusterSpec::Without(absl::string_view role) const {
  ClusterSpec rest = *this;
  rest.roles_.erase(std::string(role));
  return rest;
}

ClusterSpec ClusterSpec::SparseViewOf(const TaskId& task) const {
  ClusterSpec view;
  if (task.role != "ps") {
    for (const char* role : {"chief", "master", "ps"}) {
      if (const auto found = roles_.find(role); found != roles_.end()) view.roles_.insert(*found);
    }
  }
  if (Contains(task)) view.Set(task, std::string(AddressOf(task)));
  return view;
}

}  // namespace muster::cluster
