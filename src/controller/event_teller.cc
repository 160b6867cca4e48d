#include "controller/event_teller.h"

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
constexpr size_t kMostWaiting = 2'000;  // some minutes' worth, and little memory
constexpr size_t kMostTold = 4'000;     // whose counts may go up
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

absl::Status EventTeller::Write(const News& news, const std::stop_token& stop) {
  const std::string said =
      absl::StrCat(news.job.uid, "\n", news.event.reason, "\n", news.event.message);
  if (const auto told = told_.find(said); told != told_.end()) {
    const absl::Status counted = client_
                                     .Patch(k8s::kEvents, told->second.key,
                                            {{"count", told->second.count + 1},
                                             {"lastTimestamp", k8s::Timestamp(news.time)}},
                                            {.stop = stop, .without_answer = true})
                                     .status();
    if (counted.ok()) ++told->second.count;
    if (!k8s::IsNoSuchObject(counted)) return counted;
  }
  // Its name is chosen here: then no answer needs to be read.
  Json object = k8s::MakeEvent(news.job, {.warning = news.event.warning,
                                          .reason = news.event.reason,
                                          .message = news.event.message,
                                          .component = kComponent,
                                          .time = news.time});
  Json& metadata = object["metadata"];
  last_name_ = std::max(last_name_ + 1, absl::ToUnixNanos(news.time));
  metadata["name"] = absl::StrCat(news.job.key.name, ".", absl::Hex(last_name_, absl::kZeroPad16));
  metadata.erase("generateName");
  MUSTER_RETURN_IF_ERROR(
      client_.Create(k8s::kEvents, object, {.stop = stop, .without_answer = true}).status());
  if (told_.size() >= kMostTold) told_.clear();
  told_[said] = {.key = k8s::KeyOf(object), .count = 1};
  return absl::OkStatus();
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
    const absl::Status written = Write(news, stop);
    if (!written.ok() && !absl::IsCancelled(written)) {
      log_(absl::StrCat("cannot record an event: ", written.message()));
    }
    absl::MutexLock lock(&mutex_);
    telling_ = false;
  }
}

}  // namespace muster::controller
