#include "controller/job_counter.h"

#include "controller/rules/conditions.h"
#include "controller/rules/tfjob.h"

namespace muster::controller {

void JobCounter::Created(const Json& job) {
  absl::MutexLock lock(&mutex_);
  ++counts_[k8s::KeyOf(job).ns].created;
}

void JobCounter::Deleted(const Json& job) {
  absl::MutexLock lock(&mutex_);
  ++counts_[k8s::KeyOf(job).ns].deleted;
}

void JobCounter::Changed(const Json& job, const Json& status) {
  const Json before = StatusOf(job);
  const auto is_new = [&](const char* type) {
    return !IsTrue(before, type) && IsTrue(status, type);
  };
  absl::MutexLock lock(&mutex_);
  JobCounts& counts = counts_[k8s::KeyOf(job).ns];
  if (is_new(kSucceeded)) ++counts.succeeded;
  if (is_new(kFailed)) ++counts.failed;
  if (is_new(kRestarting)) ++counts.restarted;
}

std::map<std::string, JobCounts> JobCounter::Counts() const {
  absl::MutexLock lock(&mutex_);
  return counts_;
}

}  // namespace muster::controller
