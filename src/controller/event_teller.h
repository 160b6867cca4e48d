// Tells users what happened to a job, as events of Kubernetes, without keeping anybody waiting.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "controller/reconcile.h"
#include "k8s/client.h"

namespace muster::controller {

// Events are news, not state: they wait while there is work to do, though not for long, and when
// too many wait, the oldest go. One that was told before is not created again: its count goes up,
// as client-go's recorder does it. Thread-safe.
class EventTeller {
 public:
  // `client` outlives it, and so does what `is_work` looks at.
  EventTeller(k8s::Client& client, std::function<void(const std::string&)> log,
              std::function<bool()> is_work);
  // Tells what is left, for a moment.
  ~EventTeller();

  void Tell(const Json& job, const Event& event);

 private:
  struct News {
    k8s::Reference job;
    Event event;
    absl::Time time;
  };

  // An event that the API server has.
  struct Told {
    k8s::ObjectKey key;
    int count = 0;
  };

  void Work(const std::stop_token& stop);
  absl::Status Write(const News& news, const std::stop_token& stop);
  void Yield(const std::stop_token& stop) const;

  k8s::Client& client_;
  const std::function<void(const std::string&)> log_;
  const std::function<bool()> is_work_;
  absl::Mutex mutex_;
  std::deque<News> waiting_ ABSL_GUARDED_BY(mutex_);
  bool telling_ ABSL_GUARDED_BY(mutex_) = false;   // one that waits no more
  bool dropping_ ABSL_GUARDED_BY(mutex_) = false;  // which was said
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  // Of thread_ alone.
  std::map<std::string, Told> told_;  // by what they say
  int64_t last_name_ = 0;             // names end with the time, which may be the same
  std::jthread thread_;
};

}  // namespace muster::controller
