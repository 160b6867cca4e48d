#include "controller/rules/children.h"

#include "job/format/pod_template.h"
#include "manifest/pod_status.h"

namespace muster::controller {
namespace {

const Json* ListAt(const Json& object, absl::string_view path) {
  const Json* list = k8s::Find(object, path);
  return list != nullptr && list->is_array() ? list : nullptr;
}

// Returns the last known termination of the `tensorflow` container, which may be from before its
// restart, or null.
const Json* TerminatedOf(const Json& pod) {
  const Json* containers = ListAt(pod, "/status/containerStatuses");
  if (containers == nullptr) return nullptr;
  for (const Json& container : *containers) {
    if (k8s::TextAt(container, "/name") != job::kTensorflowContainer) continue;
    for (const char* path : {"/state/terminated", "/lastState/terminated"}) {
      const Json* terminated = k8s::Find(container, path);
      if (terminated != nullptr && terminated->is_object()) return terminated;
    }
  }
  return nullptr;
}

}  // namespace

absl::Time Child::deletion_deadline() const {
  if (!deleting()) return absl::InfiniteFuture();
  // The API server has added the grace period to the timestamp.
  return k8s::TimeAt(*object, "/metadata/deletionTimestamp").value_or(absl::InfinitePast());
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

bool Child::outcome_counts() const { return manifest::OutcomeCounts(*object); }

std::optional<std::string> Child::why_lost() const { return manifest::WhyLost(*object); }

std::string Child::disruption() const { return manifest::Disruption(*object); }

int Child::restarts() const {
  if (deleting()) return 0;
  const Json* containers = ListAt(*object, "/status/containerStatuses");
  if (containers == nullptr) return 0;
  int restarts = 0;
  for (const Json& container : *containers) {
    restarts += k8s::CountAt(container, "/restartCount");
  }
  return restarts;
}

Claims Claim(const TfJob& job, const std::vector<k8s::Object>& objects) {
  Claims claims;
  for (const k8s::Object& object : objects) {
    const auto task = manifest::TaskOf(*object);
    if (!task) continue;
    const std::string owner = k8s::ControllerOf(*object);
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
