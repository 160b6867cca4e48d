#include "controller/rules/conditions.h"

#include <algorithm>

namespace muster::controller {
namespace {

Json* Find(Json& conditions, absl::string_view type) {
  for (Json& condition : conditions) {
    if (condition.value("type", "") == type) return &condition;
  }
  return nullptr;
}

void MakeFalse(Json& conditions, absl::string_view type, const Condition& because, absl::Time now) {
  Json* condition = Find(conditions, type);
  if (condition == nullptr || condition->value("status", "") != "True") return;
  (*condition)["status"] = "False";
  (*condition)["reason"] = because.reason;
  (*condition)["message"] = because.message;
  (*condition)["lastUpdateTime"] = k8s::Timestamp(now);
  (*condition)["lastTransitionTime"] = k8s::Timestamp(now);
}

}  // namespace

bool IsTrue(const Json& status, absl::string_view type) {
  return k8s::FindTrueCondition(status, type) != nullptr;
}

bool IsFinished(const Json& status) {
  return IsTrue(status, kSucceeded) || IsTrue(status, kFailed);
}

void SetCondition(Json& status, const Condition& condition, absl::Time now) {
  if (IsFinished(status)) return;
  Json& conditions = status["conditions"];
  if (!conditions.is_array()) conditions = Json::array();
  const char* value = condition.value ? "True" : "False";
  Json fresh = {{"type", condition.type},
                {"status", value},
                {"reason", condition.reason},
                {"message", condition.message},
                {"lastUpdateTime", k8s::Timestamp(now)},
                {"lastTransitionTime", k8s::Timestamp(now)}};
  if (Json* old = Find(conditions, condition.type)) {
    const bool same = old->value("status", "") == value;
    if (same && old->value("reason", "") == condition.reason &&
        old->value("message", "") == condition.message) {
      return;
    }
    // The transition time changes with the status only, not with the reason.
    if (same) fresh["lastTransitionTime"] = old->value("lastTransitionTime", k8s::Timestamp(now));
    conditions.erase(conditions.begin() + (old - &conditions[0]));
  }
  if (condition.value) {
    if (condition.type == kRestarting || condition.type == kSuspended ||
        condition.type == kSucceeded || condition.type == kFailed) {
      MakeFalse(conditions, kRunning, condition, now);
    }
    if (condition.type != kRestarting && condition.type != kReplicaFailure) {
      MakeFalse(conditions, kRestarting, condition, now);
    }
  }
  conditions.push_back(std::move(fresh));
}

void RemoveCondition(Json& status, absl::string_view type) {
  const auto conditions = status.find("conditions");
  if (conditions == status.end() || !conditions->is_array() || IsFinished(status)) return;
  Json kept = Json::array();
  for (Json& condition : *conditions) {
    if (k8s::TextAt(condition, "/type") != type) kept.push_back(std::move(condition));
  }
  *conditions = std::move(kept);
}

}  // namespace muster::controller
