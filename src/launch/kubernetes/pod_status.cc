#include "launch/kubernetes/pod_status.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "job/pod_template.h"

namespace muster::kubernetes {
namespace {

const Json* FindContainer(const Json& pod) {
  const Json* all = k8s::Find(pod, "/status/containerStatuses");
  if (all == nullptr || !all->is_array()) return nullptr;
  for (const Json& container : *all) {
    if (k8s::TextAt(container, "/name") == kTensorflowContainer) return &container;
  }
  return nullptr;
}

std::optional<int> NumberAt(const Json& object, absl::string_view path) {
  const Json* number = k8s::Find(object, path);
  if (number == nullptr || !number->is_number_integer()) return std::nullopt;
  return number->get<int>();
}

std::string Joined(const std::string& reason, const std::string& message) {
  return message.empty() ? reason : absl::StrCat(reason, ": ", message);
}

}  // namespace

std::optional<TaskId> TaskOf(const Json& pod) {
  TaskId task{k8s::LabelOf(pod, kReplicaTypeLabel), 0};
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
  status.restarts = NumberAt(*container, "/restartCount").value_or(0);
  if (const Json* running = k8s::Find(*container, "/state/running")) {
    status.running = true;
    status.started = k8s::TimeAt(*running, "/startedAt");
  } else if (const Json* terminated = k8s::Find(*container, "/state/terminated")) {
    status.terminated = status.ended = true;
    status.started = k8s::TimeAt(*terminated, "/startedAt");
    status.finished = k8s::TimeAt(*terminated, "/finishedAt");
    status.exit_code = NumberAt(*terminated, "/exitCode");
    status.reason = k8s::TextAt(*terminated, "/reason");
    status.message = k8s::TextAt(*terminated, "/message");
  } else if (const Json* waiting = k8s::Find(*container, "/state/waiting")) {
    status.waiting = true;
    status.ended = k8s::Find(*container, "/lastState/terminated") != nullptr;
    status.reason = k8s::TextAt(*waiting, "/reason");
    status.message = k8s::TextAt(*waiting, "/message");
  }
  return status;
}

std::string WhyWaiting(const Json& pod) {
  const ContainerStatus container = StatusOf(pod);
  // What every container goes through is no news.
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

}  // namespace muster::kubernetes
