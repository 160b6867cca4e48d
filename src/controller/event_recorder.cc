#include "controller/event_recorder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "k8s/error.h"
#include "k8s/rate_limit.h"
#include "k8s/resource.h"

namespace muster::controller {
namespace {

constexpr char kComponent[] = "muster-operator";
constexpr size_t kMaxQueued = 2'000;   // a few minutes of events at the usual rate limit
constexpr size_t kMaxWritten = 4'000;  // events whose counts can be incremented
constexpr absl::Duration kDrainTimeout = absl::Seconds(2);
// The longest time that one event yields to other work, and the interval of checking for work.
constexpr absl::Duration kMaxYield = absl::Milliseconds(500);
constexpr absl::Duration kYieldPoll = absl::Milliseconds(20);

}  // namespace

EventRecorder::EventRecorder(k8s::Client& client, std::function<void(const std::string&)> log,
                             std::function<bool()> is_busy)
    : client_(client),
      log_(std::move(log)),
      is_busy_(std::move(is_busy)),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

EventRecorder::~EventRecorder() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
  const auto drained = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return queue_.empty() && !writing_;
  };
  mutex_.AwaitWithTimeout(absl::Condition(&drained), kDrainTimeout);
  thread_.request_stop();
}

void EventRecorder::Record(const Json& job, const Event& event) {
  QueuedEvent queued{.job = k8s::ReferenceTo(job), .event = event, .time = absl::Now()};
  absl::MutexLock lock(&mutex_);
  if (queue_.size() >= kMaxQueued) {
    queue_.pop_front();
    if (!std::exchange(dropping_, true)) {
      log_(absl::StrCat("more than ", kMaxQueued, " events are queued; dropping the oldest"));
    }
  }
  queue_.push_back(std::move(queued));
}

void EventRecorder::Yield(const std::stop_token& stop) const {
  for (absl::Duration waited; waited < kMaxYield && is_busy_(); waited += kYieldPoll) {
    if (!k8s::SleepUnlessStopped(kYieldPoll, stop)) return;
  }
}

absl::Status EventRecorder::Write(const QueuedEvent& queued, const std::stop_token& stop) {
  const std::string identity =
      absl::StrCat(queued.job.uid, "\n", queued.event.reason, "\n", queued.event.message);
  if (const auto known = written_.find(identity); known != written_.end()) {
    const absl::Status counted = client_
                                     .Patch(k8s::kEvents, known->second.key,
                                            {{"count", known->second.count + 1},
                                             {"lastTimestamp", k8s::Timestamp(queued.time)}},
                                            {.stop = stop, .discard_response = true})
                                     .status();
    if (counted.ok()) ++known->second.count;
    // The API server expires events after a while. The event is then created again.
    if (!k8s::IsNoSuchObject(counted)) return counted;
  }
  // The name is chosen here rather than by generateName, so the response need not be parsed.
  Json object = k8s::MakeEvent(queued.job, {.warning = queued.event.warning,
                                            .reason = queued.event.reason,
                                            .message = queued.event.message,
                                            .component = kComponent,
                                            .time = queued.time});
  Json& metadata = object["metadata"];
  last_name_ = std::max(last_name_ + 1, absl::ToUnixNanos(queued.time));
  metadata["name"] =
      absl::StrCat(queued.job.key.name, ".", absl::Hex(last_name_, absl::kZeroPad16));
  metadata.erase("generateName");
  MUSTER_RETURN_IF_ERROR(
      client_.Create(k8s::kEvents, object, {.stop = stop, .discard_response = true}).status());
  if (written_.size() >= kMaxWritten) written_.clear();
  written_[identity] = {.key = k8s::KeyOf(object), .count = 1};
  return absl::OkStatus();
}

void EventRecorder::Run(const std::stop_token& stop) {
  for (;;) {
    QueuedEvent queued;
    {
      absl::MutexLock lock(&mutex_);
      const auto any = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return closed_ || !queue_.empty();
      };
      mutex_.Await(absl::Condition(&any));
      if (queue_.empty() || stop.stop_requested()) return;
      queued = std::move(queue_.front());
      queue_.pop_front();
      writing_ = true;
      if (queue_.empty()) dropping_ = false;
    }
    Yield(stop);
    const absl::Status written = Write(queued, stop);
    if (!written.ok() && !absl::IsCancelled(written)) {
      log_(absl::StrCat("cannot record an event: ", written.message()));
    }
    absl::MutexLock lock(&mutex_);
    writing_ = false;
  }
}

}  // namespace muster::controller
