#include "platform/vertex/follower.h"

#include <algorithm>
#include <filesystem>

#include "absl/time/clock.h"
#include "base/files/file_lock.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "platform/vertex/log_copy.h"
#include "platform/vertex/observe.h"

namespace muster::vertex {
namespace {

constexpr absl::Duration kStateInterval = absl::Seconds(5);
constexpr absl::Duration kEndInterval = absl::Seconds(1);
// Limit on the wait for a log that cannot be read after the job has ended.
constexpr absl::Duration kEndTimeout = absl::Minutes(1);
constexpr int kMaxLogPages = 100'000;
// Each request overlaps the previous one by kLateness to find entries that arrived late. The last
// one covers the whole log, or kFinalLateness if the log has kMaxFullRead or more.
constexpr absl::Duration kLateness = absl::Minutes(1);
constexpr absl::Duration kFinalLateness = absl::Minutes(10);
constexpr size_t kMaxFullRead = 20'000;

std::string CompleteMarker(const FollowOptions& options) {
  return base::JoinPath(options.logs, "whole");
}

}  // namespace

bool IsFullyCopied(const FollowOptions& options) {
  std::error_code ignored;
  return std::filesystem::exists(CompleteMarker(options), ignored);
}

absl::StatusOr<bool> CopyOutput(Client& client, const FollowOptions& options,
                                std::optional<absl::Time> ended, const std::stop_token& stop) {
  MUSTER_ASSIGN_OR_RETURN(const auto lock,
                          base::FileLock::Try(base::JoinPath(options.logs, "copy.lock")));
  if (!lock) return false;
  const absl::Time before = absl::Now() - kLogDelay;
  MUSTER_ASSIGN_OR_RETURN(const auto copy, LogCopy::Open(options.logs, options.pools, options.log));
  const bool settled = ended && before >= *ended + kSettleTime;
  LogQuery query{.job = std::string(JobNumber(options.job)), .before = before};
  if (copy->latest() && !(settled && copy->taken() < kMaxFullRead)) {
    query.from = *copy->latest() - (settled ? kFinalLateness : kLateness);
  }
  const std::string filter = LogFilter(query);
  std::string page;
  for (int i = 0; i < kMaxLogPages; ++i) {
    MUSTER_ASSIGN_OR_RETURN(const LogPage answer,
                            client.ListLog(options.project, filter, page, stop));
    for (const LogEntry& entry : answer.entries) MUSTER_RETURN_IF_ERROR(copy->Take(entry));
    if (!answer.entries.empty()) MUSTER_RETURN_IF_ERROR(copy->Save());
    page = answer.next;
    if (page.empty()) break;
  }
  if (settled)
    base::ReplaceFile(CompleteMarker(options), "").IgnoreError();  // else it is copied again
  return ended && before >= *ended + kFinalOutputTimeout;
}

absl::StatusOr<std::unique_ptr<Follower>> Follower::Start(Client& client, FollowOptions options) {
  MUSTER_ASSIGN_OR_RETURN(base::EventFd signal, base::EventFd::Create());
  std::unique_ptr<Follower> follower(new Follower(client, std::move(options), std::move(signal)));
  Follower* self = follower.get();
  self->thread_ = std::jthread([self](const std::stop_token& stop) { self->Work(stop); });
  return follower;
}

Follower::~Follower() {
  // jthread requests the stop and joins after this body; stopping_ wakes the thread from Wait().
  const absl::MutexLock lock(&mutex_);
  stopping_ = true;
}

bool Follower::Drain() {
  signal_.Clear();
  const absl::MutexLock lock(&mutex_);
  if (!failure_.ok() && options_.warn) options_.warn(failure_);
  failure_ = absl::OkStatus();
  return !ended_;
}

void Follower::Wait(absl::Duration delay) {
  const absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(&stopping_), delay);
}

bool Follower::Poll(const std::stop_token& stop) {
  const auto job = client_.GetJob(options_.job, stop);
  const absl::Time now = absl::Now();
  std::optional<absl::Time> ended;
  if (job.ok()) ended = EndOf(*job, now);
  // A job that is gone has no end time; count it as ended long enough ago.
  if (absl::IsNotFound(job.status())) ended = now - kLogDelay - kFinalOutputTimeout;
  if (!ended && now < copy_at_) return false;
  if (ended) give_up_at_ = std::min(give_up_at_, now + kFinalOutputTimeout + kEndTimeout);
  copy_at_ = now + options_.interval;
  const auto copied = CopyOutput(client_, options_, ended, stop);
  if (copied.ok()) {
    failure_reported_ = false;
    return *copied || (ended && IsFullyCopied(options_)) || now > give_up_at_;
  }
  if (!failure_reported_) {
    const absl::MutexLock lock(&mutex_);
    failure_ = copied.status();
    failure_reported_ = true;
  }
  return now > give_up_at_;
}

void Follower::Work(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const bool over = Poll(stop);
    if (over) {
      const absl::MutexLock lock(&mutex_);
      ended_ = true;
    }
    signal_.Signal();
    if (over) return;
    const bool ending = give_up_at_ != absl::InfiniteFuture();
    Wait(std::min(options_.interval, ending ? kEndInterval : kStateInterval));
  }
}

}  // namespace muster::vertex
