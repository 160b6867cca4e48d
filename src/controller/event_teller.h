// Tells users what happened to a job, as events of Kubernetes, without keeping anybody waiting.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "controller/reconcile.h"
#include "k8s/client.h"

namespace muster::controller {

// Events are news, not state: when too many wait, the oldest go. Thread-safe.
class EventTeller {
 public:
  // `client` outlives it.
  EventTeller(k8s::Client& client, std::function<void(const std::string&)> log);
  // Tells what is left, for a moment.
  ~EventTeller();

  void Tell(const Json& job, const Event& event);

 private:
  void Work(const std::stop_token& stop);

  k8s::Client& client_;
  const std::function<void(const std::string&)> log_;
  absl::Mutex mutex_;
  std::deque<std::string> waiting_ ABSL_GUARDED_BY(mutex_);  // as text, which is small
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

}  // namespace muster::controller
