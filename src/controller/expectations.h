// Writes that the caches may not show yet.
#pragma once

#include <map>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "controller/rules/reconcile.h"

namespace muster::controller {

// Keeps the operator from sending a request twice because the cache lags behind. A creation or
// deletion is expected from when it is sent until the informer observes it, it fails, or kTimeout
// has passed. Jobs are named by JobKey(). Thread-safe.
class Expectations {
 public:
  static constexpr absl::Duration kTimeout = absl::Minutes(2);

  // Returns the newer one of the cached job and the one last passed to RecordWrite(). Drops
  // expectations that have timed out.
  Json Newest(const std::string& key, const Json& cached);
  void RecordWrite(const std::string& key, Json job);
  // Returns whether nothing has ever been requested for the job.
  bool IsNew(const std::string& key) const;
  void Forget(const std::string& key);

  // Returns the creations that are expected.
  ObjectNames Creations(const std::string& key) const;
  // Returns false if that creation is expected already.
  bool ExpectCreation(const std::string& key, const ObjectName& object);
  // Records the response. OK with `existed`: the job had that object already.
  void EndCreation(const std::string& key, const ObjectName& object, const absl::Status& status,
                   bool existed);
  void CreationObserved(const std::string& key, const ObjectName& object);

  // Returns false if that deletion is expected already. An immediate one may follow a graceful one.
  bool ExpectDeletion(const std::string& key, const Delete& removal);
  // The object is gone, or its deletion failed.
  void EndDeletion(const std::string& key, const std::string& uid);

  // Returns the objects that the API server has rejected for the current generation of the job.
  CreateFailures CreateFailuresFor(const std::string& key, const Json& job);
  // Returns the same if an object has been rejected since the last call, else none.
  CreateFailures TakeNewCreateFailures(const std::string& key);

 private:
  struct Entry {
    ObjectNames creations;
    std::set<std::string> deletions;  // uids
    CreateFailures create_failures;   // of `generation`
    bool has_new_failures = false;
    Json generation;                          // of the job
    Json written;                             // the job as last written; null once it is cached
    absl::Time since = absl::InfinitePast();  // the last request
  };

  mutable absl::Mutex mutex_;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::controller
