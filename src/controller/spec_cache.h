// What jobs say, as it was last read.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "controller/tfjob.h"

namespace muster::controller {

// Most passes find a job's spec unchanged. Thread-safe.
class SpecCache {
 public:
  // `options` must outlive it.
  explicit SpecCache(const TfJobOptions& options) : options_(options) {}

  // The spec of the job `key` names; null when it has mistakes.
  std::shared_ptr<const JobSpec> Get(const std::string& key, const Json& job);
  void Forget(const std::string& key);

 private:
  struct Entry {
    std::string uid;
    Json generation;  // counts the changes of the spec
    Json annotations;
    size_t bytes = 0;
    std::shared_ptr<const JobSpec> spec;
  };

  const TfJobOptions& options_;
  absl::Mutex mutex_;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster::controller
