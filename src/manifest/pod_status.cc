#include "manifest/pod_status.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "job/format/pod_template.h"

namespace muster::manifest {
namespace {

const Json* FindContainer(const Json& pod) {
  const Json* all = k8s::Find(pod, "/status/containerStatuses");
  if (all == nullptr || !all->is_array()) return nullptr;
  for (const Json& container : *all) {
    if (k8s::TextAt(container, "/name") == job::kTensorflowContainer) return &container;
  }
  return nullptr;
}

// Returns why an init container of the pod failed; "" if none did.
std::string InitFailure(const Json& pod) {
  const Json* all = k8s::Find(pod, "/status/initContainerStatuses");
  if (all == nullptr || !all->is_array()) return "";
  for (const Json& container : *all) {
    const Json* state = k8s::Find(container, "/state/terminated");
    const int code = state == nullptr ? 0 : k8s::NumberAt(*state, "/exitCode").value_or(0);
    if (code == 0) continue;
    const std::string message = k8s::TextAt(*state, "/message");
    return absl::StrCat("init container '", k8s::TextAt(container, "/name"),
                        "' failed with exit code ", code, message.empty() ? "" : ": ",
                        absl::StripAsciiWhitespace(message));
  }
  return "";
}

std::string Joined(const std::string& reason, const std::string& message) {
  return message.empty() ? reason : absl::StrCat(reason, ": ", message);
}

// The API server's clock dates the deletion, the node's clock the end.
constexpr absl::Duration kClockSkew = absl::Seconds(10);

// Returns the time of the deletion request. The API server stores the end of the grace period.
absl::Time DeletionRequested(const Json& pod) {
  const auto end = k8s::TimeAt(pod, "/metadata/deletionTimestamp");
  if (!end) return absl::InfiniteFuture();
  return *end -
         absl::Seconds(k8s::NumberAt(pod, "/metadata/deletionGracePeriodSeconds").value_or(0));
}

// Returns true if the cluster, not the program, ended or rejected a pod with this reason.
bool IsReasonOfLoss(absl::string_view reason) {
  constexpr absl::string_view kReasons[] = {
      "Evicted",      "Preempted",  "Preempting",      "NodeLost",
      "NodeShutdown", "Terminated", "Shutdown",        "NodeAffinity",
      "NodeName",     "NodePorts",  "TaintToleration", "UnexpectedAdmissionError"};
  return absl::StartsWith(reason, "OutOf") ||
         std::find(std::begin(kReasons), std::end(kReasons), reason) != std::end(kReasons);
}

}  // namespace

std::optional<cluster::TaskId> TaskOf(const Json& pod) {
  cluster::TaskId task{k8s::LabelOf(pod, kReplicaTypeLabel), 0};
  const std::string index = k8s::LabelOf(pod, kReplicaIndexLabel);
  if (task.role.empty() || !absl::SimpleAtoi(index, &task.index) || task.index < 0) {
    return std::nullopt;
  }
  return task;
}

ContainerStatus StatusOf(const Json& pod) {
  ContainerStatus status;
  const Json* container = FindContainer(pod);
  if (container == nullptr) return status;
  status.restarts = k8s::NumberAt(*container, "/restartCount").value_or(0);
  if (const Json* running = k8s::Find(*container, "/state/running")) {
    status.running = true;
    status.started = k8s::TimeAt(*running, "/startedAt");
  } else if (const Json* terminated = k8s::Find(*container, "/state/terminated")) {
    status.terminated = status.ended = true;
    status.started = k8s::TimeAt(*terminated, "/startedAt");
    status.finished = k8s::TimeAt(*terminated, "/finishedAt");
    status.exit_code = k8s::NumberAt(*terminated, "/exitCode");
    status.reason = k8s::TextAt(*terminated, "/reason");
    status.message = k8s::TextAt(*terminated, "/message");
  } else if (const Json* waiting = k8s::Find(*container, "/state/waiting")) {
    status.waiting = true;
    status.ended = k8s::Find(*container, "/lastState/terminated") != nullptr;
    status.reason = k8s::TextAt(*waiting, "/reason");
    status.message = k8s::TextAt(*waiting, "/message");
    if (std::string failure = InitFailure(pod); !failure.empty()) {
      status.reason = std::move(failure);
      status.message.clear();
    }
  }
  return status;
}

bool OutcomeCounts(const Json& pod) {
  if (!k8s::IsBeingDeleted(pod)) return true;
  // Every container must have finished: a sidecar killed by the deletion would fail the pod.
  const absl::Time limit = DeletionRequested(pod) - kClockSkew;
  const Json* all = k8s::Find(pod, "/status/containerStatuses");
  return FindContainer(pod) != nullptr &&
         std::all_of(all->begin(), all->end(), [limit](const Json& container) {
           const auto finished = k8s::TimeAt(container, "/state/terminated/finishedAt");
           return finished && *finished <= limit;
         });
}

std::string Disruption(const Json& pod) {
  const Json* status = k8s::Find(pod, "/status");
  const Json* target =
      status == nullptr ? nullptr : k8s::FindTrueCondition(*status, kDisruptionTarget);
  if (target == nullptr) return "";
  const std::string reason = k8s::TextAt(*target, "/reason");
  return Joined(reason.empty() ? kDisruptionTarget : reason, k8s::TextAt(*target, "/message"));
}

std::optional<std::string> WhyLost(const Json& pod) {
  if (k8s::TextAt(pod, "/status/phase") != "Failed") return std::nullopt;
  const ContainerStatus container = StatusOf(pod);
  const std::string reason = k8s::TextAt(pod, "/status/reason");
  // A limit set by the template, not an action of the cluster.
  if (reason == "DeadlineExceeded") return std::nullopt;
  const std::string disruption = Disruption(pod);
  // Without an exit code, any reason is the kubelet's for not having run the pod.
  if (!reason.empty() && (!container.exit_code || IsReasonOfLoss(reason) || !disruption.empty())) {
    return Joined(reason, k8s::TextAt(pod, "/status/message"));
  }
  if (!disruption.empty()) return disruption;
  // No kubelet has reported an exit, so the control plane gave up the pod. A waiting container has
  // not started because an init container failed.
  if (container.exit_code || container.waiting) return std::nullopt;
  return Joined("its node is gone", k8s::TextAt(pod, "/status/message"));
}

std::string WhyWaiting(const Json& pod) {
  const ContainerStatus container = StatusOf(pod);
  // Every container passes through these states.
  if (container.waiting && container.reason != "ContainerCreating" &&
      container.reason != "PodInitializing") {
    return Joined(container.reason, container.message);
  }
  const Json* conditions = k8s::Find(pod, "/status/conditions");
  if (conditions == nullptr || !conditions->is_array()) return "";
  for (const Json& condition : *conditions) {
    if (k8s::TextAt(condition, "/type") == "PodScheduled" &&
        k8s::TextAt(condition, "/status") == "False") {
      return Joined(k8s::TextAt(condition, "/reason"), k8s::TextAt(condition, "/message"));
    }
  }
  return "";
}

}  // namespace muster::manifest
