#include "controller/rules/restarts.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace muster::controller {
namespace {

// The delays of a kubelet for containers that crash, and the time without a loss after which the
// delay starts over.
constexpr absl::Duration kFirstDelay = absl::Seconds(10);
constexpr absl::Duration kMaxDelay = absl::Minutes(5);
constexpr absl::Duration kBackoffReset = absl::Minutes(10);

const Json* FindRecord(const Json& status, const std::string& record) {
  const Json* all = k8s::Find(status, "/restarts");
  if (all == nullptr || !all->is_object()) return nullptr;
  const auto found = all->find(record);
  return found != all->end() && found->is_object() ? &*found : nullptr;
}

int Number(const Json* record, absl::string_view path) {
  return record == nullptr ? 0 : k8s::CountAt(*record, path);
}

// Returns the record to update, or null if it already counts that pod.
Json* BeginUpdate(Json& status, const std::string& record, const std::string& pod_uid) {
  const Json* known = FindRecord(status, record);
  if (known != nullptr && k8s::TextAt(*known, "/lastPod") == pod_uid) return nullptr;
  Json& all = status["restarts"];
  if (!all.is_object()) all = Json::object();
  Json& own = all[record];
  if (!own.is_object()) own = {{"count", 0}};
  own["lastPod"] = pod_uid;
  return &own;
}

}  // namespace

bool CountFailure(Json& status, const std::string& record, const std::string& pod_uid) {
  Json* own = BeginUpdate(status, record, pod_uid);
  if (own == nullptr) return false;
  (*own)["count"] = Number(own, "/count") + 1;
  return true;
}

bool RecordLoss(Json& status, const std::string& record, const std::string& pod_uid,
                absl::Time now) {
  Json* own = BeginUpdate(status, record, pod_uid);
  if (own == nullptr) return false;
  const auto last = k8s::TimeAt(*own, "/lastLost");
  const bool in_a_row = last && now - *last < kBackoffReset;
  (*own)["count"] = Number(own, "/count");
  (*own)["lost"] = Number(own, "/lost") + 1;
  (*own)["lostInARow"] = in_a_row ? Number(own, "/lostInARow") + 1 : 1;
  (*own)["lastLost"] = k8s::Timestamp(now);
  return true;
}

int FailuresOf(const Json& status, const std::string& record) {
  return Number(FindRecord(status, record), "/count");
}

int Failures(const Json& status) {
  const Json* all = k8s::Find(status, "/restarts");
  if (all == nullptr || !all->is_object()) return 0;
  int total = 0;
  for (const Json& own : *all) total += Number(&own, "/count");
  return total;
}

int Replacements(const Json& status, const std::string& record) {
  const Json* own = FindRecord(status, record);
  return Number(own, "/count") + Number(own, "/lost");
}

absl::Time NextReplacement(const Json& status, const std::string& record) {
  const Json* own = FindRecord(status, record);
  const int row = Number(own, "/lostInARow");
  if (row < 2) return absl::InfinitePast();
  const absl::Duration delay = kFirstDelay * std::exp2(std::min(row - 2, 20));
  return k8s::TimeAt(*own, "/lastLost").value_or(absl::InfinitePast()) + std::min(delay, kMaxDelay);
}

}  // namespace muster::controller
