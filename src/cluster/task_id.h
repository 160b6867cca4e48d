// The id of a task within its job: a role and an index, written "worker:1".
#pragma once

#include <compare>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::cluster {

struct TaskId {
  std::string role;
  int index = 0;

  // Parses "worker:1"; a role alone means index 0. Returns InvalidArgument for anything else.
  static absl::StatusOr<TaskId> Parse(absl::string_view text);
  std::string ToString() const;

  auto operator<=>(const TaskId&) const = default;
};

}  // namespace muster::cluster
