#include "controller/children.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster::controller {
namespace {

// The last known end of a container, now or before its restart.
const Json* TerminatedOf(const Json& status) {
  for (const char* key : {"state", "lastState"}) {
    const auto state = status.find(key);
    if (state == status.end() || !state->is_object()) continue;
    const auto terminated = state->find("terminated");
    if (terminated != state->end() && terminated->is_object()) return &*terminated;
  }
  return nullptr;
}

const Json* MainStatus(const Json& pod) {
  const auto status = pod.find("status");
  if (status == pod.end() || !status->is_object()) return nullptr;
  const auto containers = status->find("containerStatuses");
  if (containers == status->end() || !containers->is_array()) return nullptr;
  for (const Json& container : *containers) {
    if (TextAt(container, "name") == kContainer) return &container;
  }
  return nullptr;
}

std::optional<TaskId> TaskOf(const Json& object) {
  const Json labels = ObjectAt(ObjectAt(object, "metadata"), "labels");
  TaskId task{TextAt(labels, absl::StrCat(kLabelPrefix, "replica-type")), 0};
  const std::string index = TextAt(labels, absl::StrCat(kLabelPrefix, "replica-index"));
  if (task.role.empty() || !absl::SimpleAtoi(index, &task.index) || task.index < 0) {
    return std::nullopt;
  }
  return task;
}

// Of the owner that controls it; "" when none does.
std::string ControllerOf(const Json& object) {
  const Json metadata = ObjectAt(object, "metadata");
  const auto owners = metadata.find("ownerReferences");
  if (owners == metadata.end() || !owners->is_array()) return "";
  for (const Json& owner : *owners) {
    if (owner.is_object() && owner.value("controller", false)) return TextAt(owner, "uid");
  }
  return "";
}

}  // namespace

absl::Time Child::gone_by() const {
  if (!deleting()) return absl::InfiniteFuture();
  // The API server has added the grace period to it.
  return TimeFromText((*object)["metadata"]["deletionTimestamp"]);
}

Phase Child::phase() const {
  const std::string phase = TextAt(ObjectAt(*object, "status"), "phase");
  if (phase == "Running") return Phase::kRunning;
  if (phase == "Succeeded") return Phase::kSucceeded;
  if (phase == "Failed") return Phase::kFailed;
  return phase == "Unknown" ? Phase::kUnknown : Phase::kPending;
}

std::optional<int> Child::exit_code() const {
  const Json* status = MainStatus(*object);
  const Json* terminated = status == nullptr ? nullptr : TerminatedOf(*status);
  if (terminated == nullptr) return std::nullopt;
  const auto code = terminated->find("exitCode");
  if (code == terminated->end() || !code->is_number_integer()) return std::nullopt;
  return code->get<int>();
}

std::string Child::reason() const {
  const std::string own = TextAt(ObjectAt(*object, "status"), "reason");
  if (!own.empty()) return own;
  const Json* status = MainStatus(*object);
  const Json* terminated = status == nullptr ? nullptr : TerminatedOf(*status);
  return terminated == nullptr ? "" : TextAt(*terminated, "reason");
}

int Child::restarts() const {
  const Json status = ObjectAt(*object, "status");
  const auto containers = status.find("containerStatuses");
  if (containers == status.end() || !containers->is_array()) return 0;
  int restarts = 0;
  for (const Json& container : *containers) {
    if (container.is_object()) restarts += container.value("restartCount", 0);
  }
  return restarts;
}

Claims Claim(const TfJob& job, const std::vector<Json>& objects) {
  Claims claims;
  for (const Json& object : objects) {
    const auto task = TaskOf(object);
    if (!task) continue;
    const std::string owner = ControllerOf(object);
    const Child child{&object};
    if (owner.empty() && !child.deleting() && child.name() == job.NameOf(*task)) {
      claims.orphans.push_back(child);
    } else if (owner == job.uid()) {
      claims.slots.emplace(*task, child);
    } else {
      claims.foreign.push_back(child);
    }
  }
  return claims;
}

}  // namespace muster::controller
