// Records Kubernetes events about jobs.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "controller/rules/reconcile.h"
#include "k8s/client.h"

namespace muster::controller {

// Writes events on a thread of its own, so that Record() does not block. Events yield to other
// work for a short time, and the oldest are dropped when too many are queued. An event that repeats
// an earlier one increments its count, as client-go's recorder does. Thread-safe.
class EventRecorder {
 public:
  // REQUIRES: `client`, and everything that `is_busy` uses, outlive the recorder. `is_busy` returns
  // whether there is work that events should yield to; it is called on the recorder's thread.
  EventRecorder(k8s::Client& client, std::function<void(const std::string&)> log,
                std::function<bool()> is_busy);
  // Waits a short time for queued events to be written.
  ~EventRecorder();

  void Record(const Json& job, const Event& event);

 private:
  struct QueuedEvent {
    k8s::Reference job;
    Event event;
    absl::Time time;
  };

  // An event that the API server stores.
  struct WrittenEvent {
    k8s::ObjectKey key;
    int count = 0;
  };

  void Run(const std::stop_token& stop);
  absl::Status Write(const QueuedEvent& queued, const std::stop_token& stop);
  // Sleeps while there is other work, for a limited time.
  void Yield(const std::stop_token& stop) const;

  k8s::Client& client_;
  const std::function<void(const std::string&)> log_;
  const std::function<bool()> is_busy_;
  absl::Mutex mutex_;
  std::deque<QueuedEvent> queue_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;   // an event that has left the queue
  bool dropping_ ABSL_GUARDED_BY(mutex_) = false;  // the drop has been logged
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  // Used by thread_ only.
  std::map<std::string, WrittenEvent> written_;  // by job, reason and message
  int64_t last_name_ = 0;  // names end with a timestamp, made unique by counting up
  std::jthread thread_;
};

}  // namespace muster::controller
