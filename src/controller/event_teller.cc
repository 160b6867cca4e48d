#include "controller/event_teller.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "k8s/rate_limit.h"
#include "k8s/resource.h"

namespace muster::controller {
namespace {

constexpr char kComponent[] = "muster-operator";
constexpr size_t kMostWaiting = 2'000;  // some minutes' worth, and little memory
constexpr absl::Duration kLastWords = absl::Seconds(2);
// How long work keeps one event waiting, and how often it is asked whether it still does.
constexpr absl::Duration kMostDelay = absl::Milliseconds(500);
constexpr absl::Duration kLook = absl::Milliseconds(20);

}  // namespace

EventTeller::EventTeller(k8s::Client& client, std::function<void(const std::string&)> log,
                         std::function<bool()> is_work)
    : client_(client),
      log_(std::move(log)),
      is_work_(std::move(is_work)),
      thread_([this](const std::stop_token& stop) { Work(stop); }) {}

EventTeller::~EventTeller() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
  const auto told = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return waiting_.empty() && !telling_;
  };
  mutex_.AwaitWithTimeout(absl::Condition(&told), kLastWords);
  thread_.request_stop();
}

void EventTeller::Tell(const Json& job, const Event& event) {
  News news{.job = k8s::ReferenceTo(job), .event = event, .time = absl::Now()};
  absl::MutexLock lock(&mutex_);
  if (waiting_.size() >= kMostWaiting) {
    waiting_.pop_front();
    if (!std::exchange(dropping_, true)) {
      log_(absl::StrCat("more than ", kMostWaiting, " events wait: the oldest are not told"));
    }
  }
  waiting_.push_back(std::move(news));
}

void EventTeller::Yield(const std::stop_token& stop) const {
  for (absl::Duration waited; waited < kMostDelay && is_work_(); waited += kLook) {
    if (!k8s::SleepUnlessStopped(kLook, stop)) return;
  }
}

void EventTeller::Work(const std::stop_token& stop) {
  for (;;) {
    News news;
    {
      absl::MutexLock lock(&mutex_);
      const auto any = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return closed_ || !waiting_.empty();
      };
      mutex_.Await(absl::Condition(&any));
      if (waiting_.empty() || stop.stop_requested()) return;
      news = std::move(waiting_.front());
      waiting_.pop_front();
      telling_ = true;
      if (waiting_.empty()) dropping_ = false;
    }
    Yield(stop);
    const Json object = k8s::MakeEvent(news.job, {.warning = news.event.warning,
                                                  .reason = news.event.reason,
                                                  .message = news.event.message,
                                                  .component = kComponent,
                                                  .time = news.time});
    const auto told = client_.Create(k8s::kEvents, object, {.stop = stop, .without_answer = true});
    if (!told.ok() && !absl::IsCancelled(told.status())) {
      log_(absl::StrCat("an event could not be told: ", told.status().message()));
    }
    absl::MutexLock lock(&mutex_);
    telling_ = false;
  }
}

}  // namespace muster::controller
