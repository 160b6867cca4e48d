#include "controller/expectations.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "controller/rules/create_failures.h"

namespace muster::controller {
namespace {

// The API documents resourceVersion as opaque, but every server uses growing integers.
bool IsOlder(const Json& a, const Json& b) {
  uint64_t first = 0, second = 0;
  return absl::SimpleAtoi(k8s::ResourceVersionOf(a), &first) &&
         absl::SimpleAtoi(k8s::ResourceVersionOf(b), &second) && first < second;
}

}  // namespace

Json Expectations::Newest(const std::string& key, const Json& cached) {
  absl::MutexLock lock(&mutex_);
  Entry& entry = entries_[key];
  if (entry.written.is_object() && k8s::UidOf(entry.written) == k8s::UidOf(cached) &&
      IsOlder(cached, entry.written)) {
    return entry.written;
  }
  entry.written = nullptr;
  if (absl::Now() - entry.since > kTimeout) {
    entry.creations.clear();
    entry.deletions.clear();
  }
  return cached;
}

void Expectations::RecordWrite(const std::string& key, Json job) {
  absl::MutexLock lock(&mutex_);
  entries_[key].written = std::move(job);
}

bool Expectations::IsNew(const std::string& key) const {
  absl::MutexLock lock(&mutex_);
  const auto entry = entries_.find(key);
  return entry == entries_.end() || entry->second.since == absl::InfinitePast();
}

void Expectations::Forget(const std::string& key) {
  absl::MutexLock lock(&mutex_);
  entries_.erase(key);
}

ObjectNames Expectations::Creations(const std::string& key) const {
  absl::MutexLock lock(&mutex_);
  const auto entry = entries_.find(key);
  return entry == entries_.end() ? ObjectNames() : entry->second.creations;
}

bool Expectations::ExpectCreation(const std::string& key, const ObjectName& object) {
  absl::MutexLock lock(&mutex_);
  Entry& entry = entries_[key];
  if (!entry.creations.insert(object).second) return false;
  entry.since = absl::Now();
  return true;
}

void Expectations::EndCreation(const std::string& key, const ObjectName& object,
                               const absl::Status& status, bool existed) {
  absl::MutexLock lock(&mutex_);
  Entry& entry = entries_[key];
  if (existed || !status.ok()) entry.creations.erase(object);
  if (status.ok()) entry.create_failures.erase(object);
  if (!IsRejected(status)) return;
  AddCreateFailure(entry.create_failures, object, status, absl::Now());
  entry.has_new_failures = true;
}

void Expectations::CreationObserved(const std::string& key, const ObjectName& object) {
  absl::MutexLock lock(&mutex_);
  const auto entry = entries_.find(key);
  if (entry != entries_.end()) entry->second.creations.erase(object);
}

bool Expectations::ExpectDeletion(const std::string& key, const Delete& removal) {
  absl::MutexLock lock(&mutex_);
  Entry& entry = entries_[key];
  if (!removal.immediately && !entry.deletions.insert(removal.uid).second) return false;
  entry.since = absl::Now();
  return true;
}

void Expectations::EndDeletion(const std::string& key, const std::string& uid) {
  absl::MutexLock lock(&mutex_);
  const auto entry = entries_.find(key);
  if (entry != entries_.end()) entry->second.deletions.erase(uid);
}

CreateFailures Expectations::CreateFailuresFor(const std::string& key, const Json& job) {
  const Json* generation = k8s::Find(job, "/metadata/generation");
  absl::MutexLock lock(&mutex_);
  Entry& entry = entries_[key];
  // A new generation has another spec, whose objects the API server may accept.
  if (generation != nullptr && entry.generation != *generation) {
    entry.generation = *generation;
    entry.create_failures.clear();
  }
  return entry.create_failures;
}

CreateFailures Expectations::TakeNewCreateFailures(const std::string& key) {
  absl::MutexLock lock(&mutex_);
  const auto entry = entries_.find(key);
  if (entry == entries_.end() || !std::exchange(entry->second.has_new_failures, false)) return {};
  return entry->second.create_failures;
}

}  // namespace muster::controller
