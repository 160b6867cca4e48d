// Creations and deletions that were sent to the API server and may not be in the caches yet.
#pragma once

#include <map>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "controller/reconcile.h"

namespace muster::controller {

// Nothing that was asked for is asked for again until it shows, was answered with an error, or
// kForgetAfter has passed. Jobs are known by their keys. Thread-safe.
class Expectations {
 public:
  static constexpr absl::Duration kForgetAfter = absl::Minutes(2);

  // The newer one of the job as it is in the cache and as it was last written.
  Json Newest(const std::string& key, const Json& cached);
  void Written(const std::string& key, Json job);
  // Whether nothing was ever asked for.
  bool IsNew(const std::string& key) const;
  void Forget(const std::string& key);

  ObjectNames Creations(const std::string& key) const;
  // False when that was asked for already.
  bool BeginCreation(const std::string& key, const ObjectName& object);
  // It was answered with `status`; OK and `existed` when there was one of the job's already.
  void EndCreation(const std::string& key, const ObjectName& object, const absl::Status& status,
                   bool existed);
  void Appeared(const std::string& key, const ObjectName& object);

  // False when that was asked for already; what goes at once is asked for again.
  bool BeginDeletion(const std::string& key, const Delete& removal);
  // It is gone, or its deletion failed.
  void EndDeletion(const std::string& key, const std::string& uid);

  // The objects that the API server would not create for the job as it is.
  Refusals RefusedFor(const std::string& key, const Json& job);
  // The same when there was a refusal since it was last asked; else none.
  Refusals TakeNewRefusals(const std::string& key);

 private:
  struct Entry {
    ObjectNames creations;
    std::set<std::string> deletions;  // uids
    Refusals refused;                 // of the job's `generation`
    bool refused_anew = false;
    Json generation;
    Json written;
    absl::Time since = absl::InfinitePast();  // when something was last asked for
  };

  mutable absl::Mutex mutex_;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::controller
