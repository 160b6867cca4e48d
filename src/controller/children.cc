#include "controller/children.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster::controller {
namespace {

const Json* ListAt(const Json& object, absl::string_view path) {
  const Json* list = k8s::Find(object, path);
  return list != nullptr && list->is_array() ? list : nullptr;
}

// The last known end of the container that counts, now or before its restart.
const Json* TerminatedOf(const Json& pod) {
  const Json* containers = ListAt(pod, "/status/containerStatuses");
  if (containers == nullptr) return nullptr;
  for (const Json& container : *containers) {
    if (k8s::TextAt(container, "/name") != kContainer) continue;
    for (const char* path : {"/state/terminated", "/lastState/terminated"}) {
      const Json* terminated = k8s::Find(container, path);
      if (terminated != nullptr && terminated->is_object()) return terminated;
    }
  }
  return nullptr;
}

std::optional<TaskId> TaskOf(const Json& object) {
  TaskId task{k8s::LabelOf(object, absl::StrCat(kLabelPrefix, "replica-type")), 0};
  const std::string index = k8s::LabelOf(object, absl::StrCat(kLabelPrefix, "replica-index"));
  if (task.role.empty() || !absl::SimpleAtoi(index, &task.index) || task.index < 0) {
    return std::nullopt;
  }
  return task;
}

}  // namespace

std::string ControllerOf(const Json& object) {
  const Json* owners = ListAt(object, "/metadata/ownerReferences");
  if (owners == nullptr) return "";
  for (const Json& owner : *owners) {
    if (owner.is_object() && owner.value("controller", false)) return k8s::TextAt(owner, "/uid");
  }
  return "";
}

absl::Time Child::gone_by() const {
  if (!deleting()) return absl::InfiniteFuture();
  // The API server has added the grace period to it.
  return TimeFromText(*k8s::Find(*object, "/metadata/deletionTimestamp"));
}

std::string Child::annotation(const std::string& name) const {
  const Json* annotations = k8s::Find(*object, "/metadata/annotations");
  if (annotations == nullptr || !annotations->is_object()) return "";
  const auto found = annotations->find(name);  // a name may hold a slash
  return found != annotations->end() && found->is_string() ? found->get<std::string>() : "";
}

Phase Child::phase() const {
  const std::string phase = k8s::TextAt(*object, "/status/phase");
  if (phase == "Running") return Phase::kRunning;
  if (phase == "Succeeded") return Phase::kSucceeded;
  if (phase == "Failed") return Phase::kFailed;
  return phase == "Unknown" ? Phase::kUnknown : Phase::kPending;
}

bool Child::ready() const {
  const Json* status = k8s::Find(*object, "/status");
  return status != nullptr && IsTrue(*status, "Ready");
}

std::optional<int> Child::exit_code() const {
  const Json* terminated = TerminatedOf(*object);
  if (terminated == nullptr) return std::nullopt;
  const auto code = terminated->find("exitCode");
  if (code == terminated->end() || !code->is_number_integer()) return std::nullopt;
  return code->get<int>();
}

std::string Child::reason() const {
  const std::string own = k8s::TextAt(*object, "/status/reason");
  if (!own.empty()) return own;
  const Json* terminated = TerminatedOf(*object);
  return terminated == nullptr ? "" : k8s::TextAt(*terminated, "/reason");
}

int Child::restarts() const {
  const Json* containers = ListAt(*object, "/status/containerStatuses");
  if (containers == nullptr) return 0;
  int restarts = 0;
  for (const Json& container : *containers) {
    if (container.is_object()) restarts += container.value("restartCount", 0);
  }
  return restarts;
}

Claims Claim(const TfJob& job, const std::vector<k8s::Object>& objects) {
  Claims claims;
  for (const k8s::Object& object : objects) {
    const auto task = TaskOf(*object);
    if (!task) continue;
    const std::string owner = ControllerOf(*object);
    const Child child{object.get()};
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
