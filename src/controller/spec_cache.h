// Parsed job specs.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "controller/rules/tfjob.h"

namespace muster::controller {

// Saves parsing a job whose spec has not changed since it was last reconciled. Thread-safe.
class SpecCache {
 public:
  // `options` outlives the cache.
  explicit SpecCache(const TfJobOptions& options) : options_(options) {}

  // Returns the spec of `job`, which has that key, or null if the job is invalid.
  std::shared_ptr<const job::JobSpec> Get(const std::string& key, const Json& job);
  void Forget(const std::string& key);

 private:
  struct Entry {
    std::string uid;
    Json generation;  // the API server increments it when the spec changes
    Json annotations;
    size_t bytes = 0;
    std::shared_ptr<const job::JobSpec> spec;
  };

  const TfJobOptions& options_;
  absl::Mutex mutex_;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster::controller
