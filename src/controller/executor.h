// Executes the actions of a plan against the API server.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "controller/event_recorder.h"
#include "controller/expectations.h"
#include "controller/rules/reconcile.h"
#include "controller/thread_pool.h"
#include "controller/work_queue.h"
#include "k8s/client.h"

namespace muster::controller {

// Delay after which a job is reconciled again in case the caches never show an object that was
// requested. By then its expectation has expired.
inline constexpr absl::Duration kExpectationRecheck = absl::Minutes(4);
static_assert(kExpectationRecheck > Expectations::kTimeout);

// Thread-safe.
class Executor {
 public:
  // All arguments outlive the executor. `helpers` threads run requests beside the calling one.
  Executor(k8s::Client& client, EventRecorder& recorder, Expectations& expectations,
           WorkQueue& queue, int helpers);

  // Executes `actions` in order, except that pods and services are created in parallel. Each
  // object is built right before it is sent. Returns the first error, or Cancelled if Stop() was
  // called before all actions were done. Objects that the API server rejects are not an error: they
  // are recorded in the expectations.
  absl::Status Execute(const std::string& key, const TfJob& job,
                       const std::vector<Action>& actions);

  // Makes Execute() skip all actions that have not begun.
  void Stop() { stopping_ = true; }

 private:
  absl::Status Do(const std::string& key, const TfJob& job, const Create& create);
  absl::Status Do(const std::string& key, const TfJob& job, const Delete& removal);
  absl::Status Do(const std::string& key, const TfJob& job, const Change& change);
  absl::Status Do(const std::string& key, const TfJob& job, const DeleteJob& removal);
  // Returns OK if the existing object is the job's own, else AlreadyExists; Aborted if it has been
  // deleted meanwhile.
  absl::Status CheckExisting(const std::string& key, const k8s::ResourceKind& kind,
                             const k8s::ObjectKey& object);

  k8s::Client& client_;
  EventRecorder& recorder_;
  Expectations& expectations_;
  WorkQueue& queue_;
  std::atomic<bool> stopping_ = false;
  ThreadPool pool_;
};

}  // namespace muster::controller
