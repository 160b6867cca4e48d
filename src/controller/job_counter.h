// Counts jobs and their outcomes, for metrics.
#pragma once

#include <map>
#include <string>

#include "absl/synchronization/mutex.h"
#include "k8s/resource.h"

namespace muster::controller {

// Totals since the operator started.
struct JobCounts {
  int64_t created = 0;
  int64_t deleted = 0;
  int64_t succeeded = 0;
  int64_t failed = 0;
  int64_t restarted = 0;
};

// Thread-safe.
class JobCounter {
 public:
  void Created(const k8s::Json& job);
  void Deleted(const k8s::Json& job);
  // Counts the transitions from the status of `job` to `status`, which was written.
  void Changed(const k8s::Json& job, const k8s::Json& status);

  // Returns the totals by namespace.
  std::map<std::string, JobCounts> Counts() const;

 private:
  mutable absl::Mutex mutex_;
  std::map<std::string, JobCounts> counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::controller
