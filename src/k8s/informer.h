// A copy of a cluster's objects that is kept up to date.
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

// Told in the informer's thread, one after the other, when the copy has changed already. Any may be
// empty.
struct InformerHandler {
  std::function<void(const Object& object)> added;
  std::function<void(const Object& before, const Object& after)> updated;
  // With what was last known of it. Those that were deleted while nobody looked are told, too.
  std::function<void(const Object& last)> deleted;
};

struct InformerOptions {
  ResourceKind kind;
  Selection selection = {};
  std::function<void(Json&)> transform = {};  // drops what nobody needs: managedFields, say
  // By which Indexed() finds an object, such as the job that it belongs to; "": by nothing.
  std::function<std::string(const Json&)> index = {};
  // What hinders it; it goes on trying. In the informer's thread.
  std::function<void(const absl::Status&)> on_error = {};
  absl::Duration first_delay = absl::Milliseconds(500);
  absl::Duration max_delay = absl::Seconds(30);
  WatchOptions watch = {};  // its time-outs and delays, and what it leaves out
};

// The objects that an informer knows. Thread-safe.
class ObjectCache {
 public:
  explicit ObjectCache(std::function<std::string(const Json&)> index) : index_(std::move(index)) {}

  Object Get(const ObjectKey& key) const;
  std::vector<Object> All() const;
  std::vector<Object> Indexed(const std::string& key) const;

  // What was there before; null: nothing.
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

// Lists the objects of a selection, watches them, and lists them again when the server has
// forgotten what came after the last that was seen.
class Informer {
 public:
  // `client` must outlive it.
  Informer(Client& client, InformerOptions options, InformerHandler handler);
  // Stops it.
  ~Informer();
  Informer(const Informer&) = delete;
  Informer& operator=(const Informer&) = delete;

  void Start();  // once
  // Returns when no handler is running, nor will be. Not to be called by a handler.
  void Stop();

  // Whether the first list is here, and all of it told.
  bool WaitUntilSynced(absl::Duration timeout) const;
  const ObjectCache& cache() const { return cache_; }

 private:
  void Run(const std::stop_token& stop);
  absl::Status ListAndWatch(const std::stop_token& stop);
  void Replace(std::vector<Json> items);
  void Changed(const Object& object);
  void Gone(const ObjectKey& key, const Object& last);
  absl::Status Take(WatchEvent event);

  Client& client_;
  const InformerOptions options_;
  const InformerHandler handler_;
  ObjectCache cache_;
  bool progress_ = false;  // of the thread's
  mutable absl::Mutex mutex_;
  bool synced_ ABSL_GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

}  // namespace muster::k8s
