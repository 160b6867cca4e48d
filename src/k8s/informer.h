// A local cache of objects that follows the cluster.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "k8s/client.h"
#include "k8s/watch.h"

namespace muster::k8s {

using Object = std::shared_ptr<const Json>;

// Callbacks run on the informer's thread, one at a time, after the cache has changed. Each may be
// empty.
struct InformerHandler {
  std::function<void(const Object& object)> added;
  std::function<void(const Object& before, const Object& after)> updated;
  // `last` is the last known version. Also called for objects that were deleted while the watch was
  // interrupted.
  std::function<void(const Object& last)> deleted;
};

struct InformerOptions {
  ResourceKind kind;
  Selection selection = {};
  // Drops members that are not needed, such as managedFields.
  std::function<void(Json&)> transform = {};
  // Returns the key by which Indexed() finds an object, such as its owner; "": none.
  std::function<std::string(const Json&)> index = {};
  // Called on the informer's thread for errors of a list or watch, which are retried.
  std::function<void(const absl::Status&)> on_error = {};
  absl::Duration first_delay = absl::Milliseconds(500);
  absl::Duration max_delay = absl::Seconds(30);
  WatchOptions watch = {};  // timeouts, delays and detail
};

// The objects of an informer. Thread-safe.
class ObjectCache {
 public:
  explicit ObjectCache(std::function<std::string(const Json&)> index) : index_(std::move(index)) {}

  Object Get(const ObjectKey& key) const;
  std::vector<Object> All() const;
  std::vector<Object> Indexed(const std::string& key) const;

  // Return the previous version, or null.
  Object Put(const Object& object);
  Object Remove(const ObjectKey& key);

 private:
  using Objects = std::map<ObjectKey, Object>;
  void Unindex(const Object& object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::function<std::string(const Json&)> index_;
  mutable absl::Mutex mutex_;
  Objects objects_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, std::vector<Object>> indexed_ ABSL_GUARDED_BY(mutex_);
};

// Lists the objects of a selection and watches them. Lists again when the server no longer has the
// events after the last one that was received.
//
//    list ──Replace──> watch ──event──> watch
//     ^                  │
//     └──────────────────┘  Gone: at once · other errors: after a backoff with jitter
//
// A handler sees every object in `added` before `updated` and `deleted`, but not every change: the
// changes of an interruption arrive as one.
class Informer {
 public:
  // `client` outlives the informer.
  Informer(Client& client, InformerOptions options, InformerHandler handler);
  ~Informer();
  Informer(const Informer&) = delete;
  Informer& operator=(const Informer&) = delete;

  void Start();  // once
  // Returns when no callback runs or will run. Must not be called by a callback.
  void Stop();

  // Returns whether the first list has been received and passed to the handler.
  bool WaitUntilSynced(absl::Duration timeout) const;
  const ObjectCache& cache() const { return cache_; }

 private:
  void Run(const std::stop_token& stop);
  absl::Status ListAndWatch(const std::stop_token& stop);
  void Replace(std::vector<Json> items);
  void Changed(const Object& object);
  void Gone(const ObjectKey& key, const Object& last);
  absl::Status HandleEvent(WatchEvent event);

  Client& client_;
  const InformerOptions options_;
  const InformerHandler handler_;
  ObjectCache cache_;
  bool progress_ = false;  // used by thread_ only
  mutable absl::Mutex mutex_;
  bool synced_ ABSL_GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

}  // namespace muster::k8s
