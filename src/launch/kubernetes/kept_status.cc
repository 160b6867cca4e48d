#include "launch/kubernetes/kept_status.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/json.h"
#include "job/tfjob_format.h"

namespace muster::kubernetes {
namespace {

// What happens next depends on them, and Kubeflow's CRD has none of them.
constexpr const char* kFields[] = {"restarts", "succeeded"};
// The API server takes 256 KiB of annotations; others have theirs.
constexpr size_t kMaxBytes = size_t{192} << 10;

std::string Text(const Json& kept) {
  return kept.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The text of `kept`, with less of the restarts where all of them would be too long. First go the
// records that only pace the replacement of lost pods; then the uids by which a pod is counted once
// (it is counted twice when its deletion fails); then records, those with the smallest counts
// first.
std::string LimitedText(Json kept) {
  std::string text = Text(kept);
  Json& restarts = kept["restarts"];
  if (text.size() <= kMaxBytes || !restarts.is_object()) return text;
  std::multimap<int, std::string> by_count;  // all but that of the whole job
  for (const auto& [name, own] : restarts.items()) {
    if (name != "job") by_count.emplace(k8s::CountAt(own, "/count"), name);
  }
  const auto counted = by_count.upper_bound(0);
  for (auto it = by_count.begin(); it != counted; ++it) restarts.erase(it->second);
  text = Text(kept);
  if (text.size() <= kMaxBytes) return text;
  for (auto it = counted; it != by_count.end(); ++it) restarts[it->second] = {{"count", it->first}};
  size_t size = Text(kept).size();
  for (auto it = counted; it != by_count.end() && size > kMaxBytes; ++it) {
    size -= Text({{it->second, restarts[it->second]}}).size() - 1;  // one brace is a comma
    restarts.erase(it->second);
  }
  return Text(kept);
}

}  // namespace

Json KeptStatus(const Json& job) {
  const Json* found = k8s::Find(job, "/status");
  Json status = found != nullptr && found->is_object() ? *found : Json::object();
  const std::string text = k8s::AnnotationOf(job, kStatusAnnotation);
  if (text.empty()) return status;
  const Json kept = ParseJson(text);
  // The annotation of another job, whose manifest was copied, says nothing of this one.
  if (!kept.is_object() || k8s::TextAt(kept, "/uid") != k8s::UidOf(job)) return status;
  for (const char* field : kFields) {
    if (kept.contains(field) && !status.contains(field)) status[field] = kept[field];
  }
  return status;
}

Json PatchForPruned(const Json& written, const Json& status) {
  Json kept = Json::object();
  for (const char* field : kFields) {
    const bool pruned = k8s::Find(written, absl::StrCat("/status/", field)) == nullptr;
    if (pruned && status.contains(field)) kept[field] = status[field];
  }
  std::string text;
  if (!kept.empty()) {
    kept["uid"] = k8s::UidOf(written);
    text = LimitedText(std::move(kept));
  }
  if (text == k8s::AnnotationOf(written, kStatusAnnotation)) return nullptr;
  const Json value = text.empty() ? Json() : Json(text);
  return {
      {"metadata", {{"uid", k8s::UidOf(written)}, {"annotations", {{kStatusAnnotation, value}}}}}};
}

}  // namespace muster::kubernetes
