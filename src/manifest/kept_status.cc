#include "manifest/kept_status.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text/json.h"
#include "job/format/tfjob_format.h"

namespace muster::manifest {
namespace {

// Fields on which the operator's next step depends, and which Kubeflow's CRD does not define.
constexpr const char* kFields[] = {"restarts", "succeeded"};
// The API server accepts 256 KiB of annotations; some of it is left to other writers.
constexpr size_t kMaxBytes = size_t{192} << 10;

std::string Text(const Json& kept) {
  return kept.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Returns the text of `kept`, without some of the restarts if it would be too long. Removes first
// the records that only pace the replacement of lost pods; then the uids that keep a pod from being
// counted twice if its deletion fails; then records, smallest counts first.
std::string LimitedText(Json kept) {
  std::string text = Text(kept);
  Json& restarts = kept["restarts"];
  if (text.size() <= kMaxBytes || !restarts.is_object()) return text;
  std::multimap<int, std::string> by_count;  // all records except that of the whole job
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
    size -= Text({{it->second, restarts[it->second]}}).size() - 1;  // a comma replaces one brace
    restarts.erase(it->second);
  }
  return Text(kept);
}

}  // namespace

Json KeptStatus(const Json& job) {
  const Json* found = k8s::Find(job, "/status");
  Json status = found != nullptr && found->is_object() ? *found : Json::object();
  const std::string text = k8s::AnnotationOf(job, job::kStatusAnnotation);
  if (text.empty()) return status;
  const Json kept = base::ParseJson(text);
  // A copied manifest carries the annotation of another job, which has another uid.
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
  if (text == k8s::AnnotationOf(written, job::kStatusAnnotation)) return nullptr;
  const Json value = text.empty() ? Json() : Json(text);
  return {{"metadata",
           {{"uid", k8s::UidOf(written)}, {"annotations", {{job::kStatusAnnotation, value}}}}}};
}

}  // namespace muster::manifest
