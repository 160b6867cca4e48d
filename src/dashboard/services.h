// Services of jobs for the threads of the server. A jobs::Service is for one thread at a time.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "jobs/service.h"

namespace muster::dashboard {

using ServiceFactory = std::function<jobs::OwnedService()>;

// Lends services, so that their histories and connections are opened once. Creates one if all are
// lent. Thread-safe. Must outlive its leases.
class ServicePool {
 public:
  explicit ServicePool(ServiceFactory make) : make_(std::move(make)) {}

  class Lease {
   public:
    Lease(ServicePool& pool, jobs::OwnedService service)
        : pool_(&pool), service_(std::move(service)) {}
    ~Lease() {
      if (service_.jobs != nullptr) pool_->Return(std::move(service_));
    }
    Lease(Lease&&) noexcept = default;
    Lease& operator=(Lease&&) = delete;

    jobs::Service& operator*() { return *service_.jobs; }

   private:
    ServicePool* pool_;
    jobs::OwnedService service_;
  };

  Lease Take() {
    {
      const absl::MutexLock lock(&mutex_);
      if (!idle_.empty()) {
        jobs::OwnedService service = std::move(idle_.back());
        idle_.pop_back();
        return Lease(*this, std::move(service));
      }
    }
    return Lease(*this, make_());
  }

 private:
  static constexpr size_t kMaxIdle = 4;

  void Return(jobs::OwnedService service) {
    const absl::MutexLock lock(&mutex_);
    if (idle_.size() < kMaxIdle) idle_.push_back(std::move(service));
  }

  const ServiceFactory make_;
  absl::Mutex mutex_;
  std::vector<jobs::OwnedService> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::dashboard
