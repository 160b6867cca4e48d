#include "controller/spec_cache.h"

#include <utility>

namespace muster::controller {
namespace {

constexpr size_t kMaxBytes = size_t{8} << 20;  // of JSON; parsed specs take a few times as much
constexpr size_t kMaxEntries = 64;

// Returns about the length of the JSON text. The recursion is bounded: parsing limits the depth.
size_t SizeOf(const Json& value) {
  constexpr size_t kEach = 16;
  if (value.is_string()) return kEach + value.get_ref<const std::string&>().size();
  size_t size = kEach;
  if (value.is_structured()) {
    for (const auto& item : value) size += SizeOf(item);
  }
  return size;
}

}  // namespace

std::shared_ptr<const job::JobSpec> SpecCache::Get(const std::string& key, const Json& job) {
  Entry entry{.uid = k8s::UidOf(job), .annotations = ObjectAt(job, "/metadata/annotations")};
  if (const Json* found = k8s::Find(job, "/metadata/generation")) entry.generation = *found;
  {
    absl::MutexLock lock(&mutex_);
    const auto known = entries_.find(key);
    if (known != entries_.end() && known->second.uid == entry.uid && !entry.generation.is_null() &&
        known->second.generation == entry.generation &&
        known->second.annotations == entry.annotations) {
      return known->second.spec;
    }
  }
  // Parsing runs without the lock; two workers never have the same key.
  auto spec = TfJob::ReadSpec(job);
  if (!spec.ok()) return nullptr;
  entry.spec = std::make_shared<const job::JobSpec>(*std::move(spec));
  if (!TfJob(job, entry.spec, options_).CheckPods().ok()) return nullptr;
  entry.bytes = SizeOf(job);
  absl::MutexLock lock(&mutex_);
  if (bytes_ + entry.bytes > kMaxBytes || entries_.size() >= kMaxEntries) {
    entries_.clear();  // active jobs are parsed again soon
    bytes_ = 0;
  }
  bytes_ += entry.bytes;
  Entry& slot = entries_[key];
  bytes_ -= slot.bytes;
  slot = std::move(entry);
  return slot.spec;
}

void SpecCache::Forget(const std::string& key) {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  bytes_ -= found->second.bytes;
  entries_.erase(found);
}

}  // namespace muster::controller
