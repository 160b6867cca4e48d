#include "platform/kubernetes/follower.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "job/format/pod_template.h"
#include "k8s/error.h"
#include "manifest/names.h"
#include "platform/kubernetes/observe.h"

namespace muster::kubernetes {
namespace {

// Time after a job's end for the last output of servers that end with it.
constexpr absl::Duration kFinalOutputTimeout = absl::Seconds(3);
constexpr absl::Duration kRetryDelay = absl::Seconds(1);
constexpr absl::Duration kSyncTimeout = absl::Seconds(30);
constexpr int kMaxCopiers = 8;

LogSource SourceOf(const Json& pod) {
  return {.pod = k8s::UidOf(pod), .restart = manifest::StatusOf(pod).restarts};
}

// Copies one run of a container. Returns OK when the copy is as complete as possible at present.
absl::Status CopyRun(k8s::Client& client, const Json& pod, const LogSource& source, LogCopy& copy,
                     k8s::LogOptions options) {
  copy.Begin(source, source.restart);
  options.container = job::kTensorflowContainer;
  options.timestamps = true;
  if (copy.since() != absl::InfinitePast()) options.since = copy.since();
  const absl::Status read = client.ReadLog(
      k8s::KeyOf(pod), options, [&copy](absl::string_view bytes) { return copy.Take(bytes); });
  // The end of the stream does not imply the end of the container: its node may be gone. Only the
  // status of the pod, which was read before the stream, is conclusive.
  MUSTER_RETURN_IF_ERROR(
      copy.End(read.ok() && (options.previous || manifest::StatusOf(pod).ended)));
  return k8s::IsNoSuchObject(read) ? absl::OkStatus() : read;
}

absl::Status CopyPod(k8s::Client& client, const Json& pod, LogCopy& copy, k8s::LogOptions options) {
  const LogSource source = SourceOf(pod);
  const LogSource before{.pod = source.pod, .restart = source.restart - 1};
  // The container restarted without a follower; the cluster keeps the output of its last run.
  if (source.restart > 0 && copy.source() != source && !copy.IsComplete(before)) {
    CopyRun(client, pod, before, copy, {.previous = true, .stop = options.stop}).IgnoreError();
  }
  return CopyRun(client, pod, source, copy, std::move(options));
}

std::string LockPath(const FollowOptions& options) {
  return base::JoinPath(options.logs, "copy.lock");
}

}  // namespace

k8s::Selection PodsOf(const k8s::ObjectKey& job) {
  return {.ns = job.ns, .labels = absl::StrCat(manifest::kTfJobNameLabel, "=", job.name)};
}

absl::StatusOr<bool> CopyOutput(k8s::Client& client, const FollowOptions& options,
                                const std::vector<Json>& pods) {
  // The lock file serializes all copiers, in any process, of the output of this job.
  MUSTER_ASSIGN_OR_RETURN(const auto lock, base::FileLock::Try(LockPath(options)));
  if (!lock) return false;
  absl::Mutex mutex;
  size_t next = 0;
  absl::Status first;
  const auto work = [&] {
    for (;;) {
      const Json* pod = nullptr;
      {
        const absl::MutexLock held(&mutex);
        if (next == pods.size()) return;
        pod = &pods[next++];
      }
      const auto task = manifest::TaskOf(*pod);
      if (!task || !manifest::StatusOf(*pod).has_output()) continue;
      auto copy = LogCopy::Open(options.logs, *task, options.log);
      absl::Status status = copy.status();
      if (status.ok() && !(*copy)->IsComplete(SourceOf(*pod))) {
        status = CopyPod(client, *pod, **copy, {});
      }
      const absl::MutexLock held(&mutex);
      first.Update(status);
    }
  };
  std::vector<std::jthread> threads;
  for (size_t i = 1; i < std::min<size_t>(kMaxCopiers, pods.size()); ++i)
    threads.emplace_back(work);
  work();
  threads.clear();
  MUSTER_RETURN_IF_ERROR(first);
  return true;
}

Follower::Follower(k8s::Client& client, FollowOptions options, base::EventFd signal)
    : client_(client), options_(std::move(options)), signal_(std::move(signal)) {}

absl::StatusOr<std::unique_ptr<Follower>> Follower::Start(k8s::Client& client,
                                                          FollowOptions options) {
  MUSTER_ASSIGN_OR_RETURN(base::EventFd signal, base::EventFd::Create());
  std::unique_ptr<Follower> follower(new Follower(client, std::move(options), std::move(signal)));
  Follower* self = follower.get();
  const FollowOptions& own = self->options_;
  {
    const absl::MutexLock held(&self->mutex_);
    MUSTER_ASSIGN_OR_RETURN(self->lock_, base::FileLock::Try(LockPath(own)));
    if (!self->lock_) {
      self->lock_waiter_ =
          std::jthread([self](const std::stop_token& stop) { self->WaitForLock(stop); });
    }
  }
  self->watched_pods_ = std::make_unique<k8s::Informer>(
      client, k8s::InformerOptions{.kind = k8s::kPods, .selection = PodsOf(own.job)},
      k8s::InformerHandler{
          .added = [self](const k8s::Object& pod) { self->OnPodEvent(*pod, false); },
          .updated = [self](const k8s::Object&,
                            const k8s::Object& pod) { self->OnPodEvent(*pod, false); },
          .deleted = [self](const k8s::Object& pod) { self->OnPodEvent(*pod, true); }});
  self->jobs_ = std::make_unique<k8s::Informer>(
      client,
      k8s::InformerOptions{
          .kind = manifest::kTfJobs,
          .selection = {.ns = own.job.ns, .fields = absl::StrCat("metadata.name=", own.job.name)}},
      k8s::InformerHandler{
          .added = [self](const k8s::Object& job) { self->OnJobEvent(*job, false); },
          .updated = [self](const k8s::Object&,
                            const k8s::Object& job) { self->OnJobEvent(*job, false); },
          .deleted = [self](const k8s::Object& job) { self->OnJobEvent(*job, true); }});
  // Pods first: if the job turns out to have ended, all of its pods are known.
  self->watched_pods_->Start();
  if (!self->watched_pods_->WaitUntilSynced(kSyncTimeout)) {
    return absl::UnavailableError("the cluster does not respond");
  }
  self->jobs_->Start();
  // No event is delivered for a job that does not exist.
  if (self->jobs_->WaitUntilSynced(kSyncTimeout) && self->jobs_->cache().Get(own.job) == nullptr) {
    self->OnJobEvent(Json::object(), true);
  }
  return follower;
}

void Follower::WaitForLock(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    auto lock = base::FileLock::Try(LockPath(options_));
    if (lock.ok() && lock->has_value()) {
      const absl::MutexLock held(&mutex_);
      lock_ = *std::move(lock);
      for (const auto& [task, pod] : pods_) StartCopying(task);
      return;
    }
    for (int i = 0; i < 10 && !stop.stop_requested(); ++i) absl::SleepFor(kRetryDelay / 10);
  }
}

Follower::~Follower() {
  // Informers and lock_waiter_ have threads that call into this object, so they end first. The
  // copying threads take mutex_ and must be joined without it: they join when `finisher` and
  // `copying` leave scope.
  lock_waiter_ = {};
  jobs_.reset();
  watched_pods_.reset();
  std::map<cluster::TaskId, Copying> copying;
  std::jthread finisher;
  {
    const absl::MutexLock lock(&mutex_);
    stopping_ = true;
    copying = std::move(copying_);
    finisher = std::move(finisher_);
  }
  for (auto& [task, one] : copying) one.stop.request_stop();
}

bool Follower::Drain() {
  signal_.Clear();
  const absl::MutexLock lock(&mutex_);
  return !ended_ || active_copies_ > 0;
}

void Follower::OnJobEvent(const Json& job, bool gone) {
  {
    const absl::MutexLock lock(&mutex_);
    const bool other = !gone && !options_.uid.empty() && k8s::UidOf(job) != options_.uid;
    const auto verdict = gone || other ? job::JobState::kStopped : VerdictOf(job);
    if (!ending_ && verdict) {
      ending_ = true;
      finisher_ = std::jthread(
          [this, immediately = verdict != job::JobState::kSucceeded] { End(immediately); });
    }
  }
  signal_.Signal();
}

void Follower::End(bool immediately) {
  const auto is_idle = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ || std::none_of(pods_.begin(), pods_.end(),
                                     [](const auto& pod) { return IsAtWork(*pod.second); });
  };
  const auto is_done = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return active_copies_ == 0 || stopping_;
  };
  const absl::MutexLock lock(&mutex_);
  if (!immediately) mutex_.AwaitWithTimeout(absl::Condition(&is_idle), options_.finish_grace);
  ended_ = true;
  signal_.Signal();
  // Servers may keep running; their output up to here counts as complete.
  mutex_.AwaitWithTimeout(absl::Condition(&is_done), kFinalOutputTimeout);
  for (auto& [task, copying] : copying_) copying.stop.request_stop();
}

void Follower::OnPodEvent(const Json& pod, bool gone) {
  const auto task = manifest::TaskOf(pod);
  if (!task) return;
  {
    const absl::MutexLock lock(&mutex_);
    if (gone) {
      const auto known = pods_.find(*task);
      if (known != pods_.end() && k8s::UidOf(*known->second) == k8s::UidOf(pod)) {
        pods_.erase(known);
      }
    } else {
      pods_[*task] = std::make_shared<const Json>(pod);
      if (lock_) StartCopying(*task);
    }
  }
  signal_.Signal();
}

void Follower::StartCopying(const cluster::TaskId& task) {
  if (ended_ || copying_.contains(task)) return;
  Copying& copying = copying_[task];
  ++active_copies_;
  copying.thread =
      std::jthread([this, token = copying.stop.get_token(), task] { Work(token, task); });
}

std::shared_ptr<const Json> Follower::Next(const cluster::TaskId& task, const LogCopy& copy) const {
  const auto found = pods_.find(task);
  if (found == pods_.end() || !manifest::StatusOf(*found->second).has_output()) return nullptr;
  return copy.IsComplete(SourceOf(*found->second)) ? nullptr : found->second;
}

void Follower::Work(const std::stop_token& stop, const cluster::TaskId& task) {
  const auto copy = LogCopy::Open(options_.logs, task, options_.log);
  while (copy.ok() && !stop.stop_requested()) {
    std::shared_ptr<const Json> pod;
    {
      const auto has_work = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
        pod = Next(task, **copy);
        return pod != nullptr || ended_ || stopping_;
      };
      const absl::MutexLock lock(&mutex_, absl::Condition(&has_work));
    }
    if (pod == nullptr) break;
    const absl::Status copied = CopyPod(client_, *pod, **copy, {.follow = true, .stop = stop});
    if (!(*copy)->IsComplete(SourceOf(*pod))) {
      absl::SleepFor(copied.ok() ? kRetryDelay / 5 : kRetryDelay);
    }
  }
  const absl::MutexLock lock(&mutex_);
  --active_copies_;
  signal_.Signal();
}

}  // namespace muster::kubernetes
