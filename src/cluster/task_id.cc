#include "cluster/task_id.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/text/terminal_text.h"

namespace muster::cluster {

absl::StatusOr<TaskId> TaskId::Parse(absl::string_view text) {
  const size_t colon = text.find(':');
  const absl::string_view role = text.substr(0, colon);
  TaskId task{std::string(role), 0};
  bool valid = !role.empty() && std::none_of(role.begin(), role.end(), absl::ascii_isspace);
  if (valid && colon != absl::string_view::npos) {
    const absl::string_view digits = text.substr(colon + 1);
    // SimpleAtoi alone would also accept "+1" and " 1".
    valid = std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit) &&
            absl::SimpleAtoi(digits, &task.index);
  }
  if (!valid) {
    return absl::InvalidArgumentError(absl::StrCat("invalid task '",
                                                   base::Ellipsize(base::Printable(text), 60),
                                                   "'; expected role:index, such as worker:1"));
  }
  return task;
}

std::string TaskId::ToString() const { return absl::StrCat(role, ":", index); }

}  // namespace muster::cluster
