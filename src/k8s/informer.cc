#include "k8s/informer.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <utility>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "k8s/error.h"

namespace muster::k8s {
namespace {

// A watch that lasted at least this long resets the backoff.
constexpr absl::Duration kMinHealthyDuration = absl::Seconds(10);

std::vector<Object> Values(const std::map<ObjectKey, Object>& objects) {
  std::vector<Object> values;
  values.reserve(objects.size());
  for (const auto& [key, object] : objects) values.push_back(object);
  return values;
}

// Spreads the reconnects of informers that started together.
double Jitter() {
  static thread_local std::minstd_rand random(std::random_device{}());
  return std::uniform_real_distribution<double>(0.5, 1)(random);
}

}  // namespace

Object ObjectCache::Get(const ObjectKey& key) const {
  absl::MutexLock lock(&mutex_);
  const auto found = objects_.find(key);
  return found == objects_.end() ? nullptr : found->second;
}

std::vector<Object> ObjectCache::All() const {
  absl::MutexLock lock(&mutex_);
  return Values(objects_);
}

std::vector<Object> ObjectCache::Indexed(const std::string& key) const {
  absl::MutexLock lock(&mutex_);
  const auto found = indexed_.find(key);
  return found == indexed_.end() ? std::vector<Object>() : found->second;
}

void ObjectCache::Unindex(const Object& object) {
  if (!index_) return;
  const auto found = indexed_.find(index_(*object));
  if (found == indexed_.end()) return;
  std::erase(found->second, object);
  if (found->second.empty()) indexed_.erase(found);
}

Object ObjectCache::Put(const Object& object) {
  const ObjectKey key = KeyOf(*object);
  const std::string index = index_ ? index_(*object) : "";
  absl::MutexLock lock(&mutex_);
  Object before = std::exchange(objects_[key], object);
  // Under the key of the old version: an update may have changed it.
  if (before != nullptr) Unindex(before);
  if (!index.empty()) indexed_[index].push_back(object);
  return before;
}

Object ObjectCache::Remove(const ObjectKey& key) {
  absl::MutexLock lock(&mutex_);
  const auto found = objects_.find(key);
  if (found == objects_.end()) return nullptr;
  Object before = std::move(found->second);
  objects_.erase(found);
  Unindex(before);
  return before;
}

Informer::Informer(Client& client, InformerOptions options, InformerHandler handler)
    : client_(client),
      options_(std::move(options)),
      handler_(std::move(handler)),
      cache_(options_.index) {}

Informer::~Informer() { Stop(); }

void Informer::Start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

void Informer::Stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

bool Informer::WaitUntilSynced(absl::Duration timeout) const {
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(&synced_), timeout);
}

void Informer::Run(const std::stop_token& stop) {
  for (int failures = 0; !stop.stop_requested();) {
    progress_ = false;
    const absl::Time begin = absl::Now();
    const absl::Status status = ListAndWatch(stop);
    if (stop.stop_requested()) return;
    if (options_.on_error && !IsGone(status)) options_.on_error(status);
    const bool lasted = progress_ || absl::Now() - begin > kMinHealthyDuration;
    failures = lasted ? 0 : failures + 1;
    // An expired version is normal for a kind that seldom changes; a list that expires at once is
    // not.
    if (lasted && IsGone(status)) continue;
    const absl::Duration delay =
        options_.first_delay * std::exp2(std::clamp(failures - 1, 0, 20)) * Jitter();
    if (!SleepUnlessStopped(std::min(delay, options_.max_delay), stop)) return;
  }
}

absl::Status Informer::ListAndWatch(const std::stop_token& stop) {
  MUSTER_ASSIGN_OR_RETURN(ObjectList list,
                          client_.List(options_.kind, {.selection = options_.selection,
                                                       .detail = options_.watch.detail,
                                                       .transform = options_.transform,
                                                       .call = {.stop = stop}}));
  Replace(std::move(list.items));
  {
    absl::MutexLock lock(&mutex_);
    synced_ = true;
  }
  WatchOptions watch = options_.watch;
  watch.selection = options_.selection;
  watch.resource_version = list.resource_version;
  // From one to two times the duration: informers that started together do not reconnect together.
  watch.duration = watch.duration * 2 * Jitter();
  watch.stop = stop;
  return Watch(client_, options_.kind, watch,
               [this](WatchEvent event) { return HandleEvent(std::move(event)); });
}

// Deletions first: a name that was taken by a new object is handled in Changed(), by its uid.
void Informer::Replace(std::vector<Json> items) {
  std::set<ObjectKey> present;
  for (const Json& item : items) present.insert(KeyOf(item));
  for (const Object& known : cache_.All()) {
    const ObjectKey key = KeyOf(*known);
    if (present.count(key) == 0) Gone(key, nullptr);
  }
  for (Json& item : items) Changed(std::make_shared<const Json>(std::move(item)));
}

void Informer::Changed(const Object& object) {
  const Object before = cache_.Put(object);
  if (before != nullptr && UidOf(*before) != UidOf(*object)) {  // recreated under the same name
    if (handler_.deleted) handler_.deleted(before);
  } else if (before != nullptr) {
    // After a reconnect the list repeats objects that have not changed.
    const bool same = ResourceVersionOf(*before) == ResourceVersionOf(*object);
    if (!same && handler_.updated) handler_.updated(before, object);
    return;
  }
  if (handler_.added) handler_.added(object);
}

void Informer::Gone(const ObjectKey& key, const Object& last) {
  const Object before = cache_.Remove(key);
  if (before == nullptr || !handler_.deleted) return;
  handler_.deleted(last == nullptr ? before : last);
}

absl::Status Informer::HandleEvent(WatchEvent event) {
  progress_ = true;
  if (event.type == WatchEvent::Type::kBookmark) return absl::OkStatus();
  if (options_.transform) options_.transform(event.object);
  const ObjectKey key = KeyOf(event.object);
  const auto object = std::make_shared<const Json>(std::move(event.object));
  if (event.type == WatchEvent::Type::kDeleted) {
    Gone(key, object);
  } else {
    Changed(object);
  }
  return absl::OkStatus();
}

}  // namespace muster::k8s
