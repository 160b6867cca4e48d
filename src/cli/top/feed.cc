#include "cli/top/feed.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "jobs/control/refresh.h"
#include "platform/capabilities.h"

namespace muster::cli {
namespace {

constexpr absl::Duration kReadInterval = absl::Seconds(1);
constexpr absl::Duration kOpenInterval = absl::Milliseconds(250);  // while a job is open
constexpr absl::Duration kObserveInterval = absl::Seconds(5);
// All jobs are read again when a job has started or ended, and at this interval.
constexpr absl::Duration kListInterval = absl::Seconds(10);
constexpr int kTailLines = 200;
constexpr size_t kMaxFinished = 5000;

bool IsObserved(jobs::Service& service, const job::JobRecord& job) {
  const auto platform = service.platform(job.platform);
  return platform.ok() && platform::CapabilityOf<platform::StateSource>(**platform) != nullptr;
}

}  // namespace

void OutputTail::Close() {
  job_.clear();
  stream_.reset();
  lines_.clear();
}

void OutputTail::Follow(jobs::Service& service, const job::JobRecord& job,
                        const std::vector<job::TaskRecord>& tasks) {
  if (job_ != job.id || stream_ == nullptr) {
    Close();
    job_ = job.id;
    const auto platform = service.platform(job.platform);
    std::vector<cluster::TaskId> ids;
    for (const job::TaskRecord& task : tasks) ids.push_back(task.id);
    auto stream = platform.ok() ? (*platform)->Logs(job, ids) : platform.status();
    if (!stream.ok()) {
      lines_ = {{"muster", std::string(stream.status().message())}};
      return;
    }
    stream_ = *std::move(stream);
    stream_->SeekTail(kTailLines);
  }
  for (const job::TaskRecord& task : tasks) stream_->AddTask(task.id);
  stream_->Acknowledge();
  while (const auto line = stream_->Next()) {
    lines_.push_back({line->task.ToString(), line->text});
    if (lines_.size() > kTailLines) lines_.pop_front();
  }
}

TopFeed::Backend::Backend(Context& context, TopFeed& feed)
    : platforms(context.platforms().registrations(),
                {.program = context.program(),
                 .home = context.home(),
                 .version = MUSTER_VERSION,
                 .notify = [&feed](const std::string& text) { feed.Notify(text); },
                 .interrupted =
                     [&feed] {
                       const absl::MutexLock lock(&feed.mutex_);
                       return feed.ending_;
                     }}),
      service({.home = context.home(),
               .program = context.program(),
               .notify = [&feed](const std::string& text) { feed.Notify(text); },
               .interrupted = nullptr},
              platforms) {}

TopFeed::TopFeed(Context& context, base::EventFd changed)
    : changed_(std::move(changed)),
      reader_backend_(context, *this),
      observer_backend_(context, *this),
      reader_([this](const std::stop_token& stop) { Read(stop); }),
      observer_([this](const std::stop_token& stop) { Observe(stop); }) {}

absl::StatusOr<std::unique_ptr<TopFeed>> TopFeed::Start(Context& context) {
  MUSTER_ASSIGN_OR_RETURN(base::EventFd changed, base::EventFd::Create());
  return std::unique_ptr<TopFeed>(new TopFeed(context, std::move(changed)));
}

TopFeed::~TopFeed() {
  reader_.request_stop();
  observer_.request_stop();
  const absl::MutexLock lock(&mutex_);
  ending_ = true;
}

void TopFeed::Notify(const std::string& text) {
  const absl::MutexLock lock(&mutex_);
  snapshot_.message = text;
  changed_.Signal();
}

TopFeed::Snapshot TopFeed::Take() {
  changed_.Clear();
  const absl::MutexLock lock(&mutex_);
  Snapshot taken = snapshot_;
  snapshot_.message.clear();
  return taken;
}

void TopFeed::Want(std::vector<std::string> visible, std::string open) {
  Request request{std::move(visible), std::move(open)};
  const absl::MutexLock lock(&mutex_);
  if (request == request_) return;
  request_ = std::move(request);
  is_new_ = true;
}

void TopFeed::Stop(std::string job) {
  const absl::MutexLock lock(&mutex_);
  stops_.push_back(std::move(job));
}

// --- the reader ---

void TopFeed::Read(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const absl::Status status = ReadOnce(reader_backend_.service);
    if (!status.ok()) Notify(std::string(status.message()));
    const absl::MutexLock lock(&mutex_);
    const auto wakes = [this]()
                           ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return is_new_ || ending_; };
    mutex_.AwaitWithTimeout(absl::Condition(&wakes),
                            request_.open.empty() ? kReadInterval : kOpenInterval);
  }
}

absl::Status TopFeed::ReadOnce(jobs::Service& service) {
  Request request;
  {
    const absl::MutexLock lock(&mutex_);
    request = request_;
    is_new_ = false;
  }
  MUSTER_RETURN_IF_ERROR(ReadJobs(service));
  MUSTER_RETURN_IF_ERROR(ReadDetails(service, request));
  MUSTER_RETURN_IF_ERROR(ReadOpen(service, request.open));
  changed_.Signal();
  return absl::OkStatus();
}

// Reads the unfinished jobs, and all jobs only if those have changed.
absl::Status TopFeed::ReadJobs(jobs::Service& service) {
  MUSTER_ASSIGN_OR_RETURN(history::History * history, service.history());
  MUSTER_ASSIGN_OR_RETURN(auto unfinished, history->ListJobs({.only_active = true}));
  std::map<std::string, job::JobState> active;
  for (job::JobRecord& job : unfinished) {
    if (!IsObserved(service, job)) MUSTER_RETURN_IF_ERROR(jobs::Refresh(service, job));
    const absl::MutexLock lock(&mutex_);
    if (const auto lost = unreachable_.find(job.id); lost != unreachable_.end()) {
      job.state = job::JobState::kUnreachable;
      job.reason = lost->second;
    }
    active[job.id] = job.state;
  }
  MUSTER_ASSIGN_OR_RETURN(const auto newest, history->ListJobs({.limit = 1}));
  JobList before;
  {
    const absl::MutexLock lock(&mutex_);
    before = snapshot_.jobs;
  }
  const absl::Time now = absl::Now();
  const bool same = before != nullptr && active == active_ && now - listed_ < kListInterval &&
                    newest.empty() == before->empty() &&
                    (newest.empty() || newest[0].id == before->front().id);
  if (same) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(auto all, history->ListJobs());
  for (job::JobRecord& job : all) {
    const auto known = active.find(job.id);
    if (known == active.end() || job::IsFinal(job.state)) continue;
    job.state = known->second;
  }
  active_ = std::move(active);
  listed_ = now;
  const absl::MutexLock lock(&mutex_);
  snapshot_.jobs = std::make_shared<const std::vector<job::JobRecord>>(std::move(all));
  return absl::OkStatus();
}

JobDetail TopFeed::DetailOf(const job::JobRecord& job, const std::vector<job::TaskRecord>& tasks) {
  JobDetail detail;
  detail.running =
      static_cast<int>(std::count_if(tasks.begin(), tasks.end(), [](const job::TaskRecord& task) {
        return task.state == job::TaskState::kRunning;
      }));
  detail.progress = jobs::ReadJobProgress(job, tasks);
  if (job::IsFinal(job.state)) {
    meters_.erase(job.id);
  } else if (detail.progress.has_value()) {
    const absl::Time now = absl::Now();
    jobs::ProgressMeter& meter = meters_[job.id];
    meter.Update(*detail.progress, now);
    detail.left = meter.Left(now);
  }
  return detail;
}

absl::Status TopFeed::ReadDetails(jobs::Service& service, const Request& request) {
  MUSTER_ASSIGN_OR_RETURN(history::History * history, service.history());
  JobDetails details;
  for (const std::string& id : request.visible) {
    if (const auto known = finished_.find(id); known != finished_.end()) {
      details[id] = known->second;
      continue;
    }
    const auto job = history->GetJob(id);
    if (!job.ok()) continue;  // it was removed
    MUSTER_ASSIGN_OR_RETURN(const auto tasks, history->Tasks(id));
    details[id] = DetailOf(*job, tasks);
    if (finished_.size() > kMaxFinished) finished_.clear();
    if (job::IsFinal(job->state)) finished_[id] = details[id];
  }
  const absl::MutexLock lock(&mutex_);
  snapshot_.details = std::move(details);
  return absl::OkStatus();
}

absl::Status TopFeed::ReadOpen(jobs::Service& service, const std::string& id) {
  std::optional<OpenJob> open;
  if (id.empty()) {
    tail_.Close();
  } else {
    MUSTER_ASSIGN_OR_RETURN(history::History * history, service.history());
    MUSTER_ASSIGN_OR_RETURN(const job::JobRecord job, history->GetJob(id));
    MUSTER_ASSIGN_OR_RETURN(const auto tasks, history->Tasks(id));
    open = OpenJob{.job = job, .detail = DetailOf(job, tasks), .tasks = tasks};
    if (!IsObserved(service, job)) {
      tail_.Follow(service, job, tasks);
      open->lines = tail_.lines();
    }
  }
  const absl::MutexLock lock(&mutex_);
  if (open.has_value() && remote_open_ == id) open->lines = remote_lines_;
  snapshot_.open = std::move(open);
  return absl::OkStatus();
}

// --- the observer ---

void TopFeed::Observe(const std::stop_token& stop) {
  jobs::Service& service = observer_backend_.service;
  absl::Time next = absl::InfinitePast();
  std::string open;
  while (!stop.stop_requested()) {
    StopWanted(service);
    if (next <= absl::Now()) {
      ObserveOnce(service);
      next = absl::Now() + kObserveInterval;
    }
    FollowRemote(service);
    const absl::MutexLock lock(&mutex_);
    open = request_.open;
    const auto wakes = [this, &open]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !stops_.empty() || ending_ || request_.open != open;
    };
    mutex_.AwaitWithTimeout(absl::Condition(&wakes),
                            remote_open_.empty() ? kObserveInterval : kReadInterval);
  }
}

void TopFeed::ObserveOnce(jobs::Service& service) {
  const auto history = service.history();
  if (!history.ok()) return;  // the reader reports it
  auto unfinished = (*history)->ListJobs({.only_active = true});
  if (!unfinished.ok()) return;
  std::map<std::string, std::string> unreachable;
  for (job::JobRecord& job : *unfinished) {
    if (!IsObserved(service, job)) continue;
    const absl::Status refreshed = jobs::Refresh(service, job);
    if (!refreshed.ok()) Notify(std::string(refreshed.message()));
    if (job.state == job::JobState::kUnreachable) unreachable[job.id] = job.reason;
    const absl::MutexLock lock(&mutex_);
    if (ending_ || !stops_.empty()) break;
  }
  const absl::MutexLock lock(&mutex_);
  unreachable_ = std::move(unreachable);
}

void TopFeed::StopWanted(jobs::Service& service) {
  std::vector<std::string> stops;
  {
    const absl::MutexLock lock(&mutex_);
    stops.swap(stops_);
  }
  for (const std::string& id : stops) {
    const auto stopped = [&]() -> absl::Status {
      MUSTER_ASSIGN_OR_RETURN(history::History * history, service.history());
      MUSTER_ASSIGN_OR_RETURN(const job::JobRecord job, history->GetJob(id));
      MUSTER_ASSIGN_OR_RETURN(platform::Platform * platform, service.platform(job.platform));
      return platform->Stop(job, /*immediately=*/false);
    }();
    if (!stopped.ok()) Notify(absl::StrCat(id, ": ", stopped.message()));
  }
}

void TopFeed::FollowRemote(jobs::Service& service) {
  std::string id;
  {
    const absl::MutexLock lock(&mutex_);
    id = request_.open;
  }
  const auto history = service.history();
  const auto job =
      history.ok() && !id.empty() ? (*history)->GetJob(id) : absl::NotFoundError("no job is open");
  if (!job.ok() || !IsObserved(service, *job)) {
    remote_tail_.Close();
    const absl::MutexLock lock(&mutex_);
    remote_open_.clear();
    return;
  }
  const auto tasks = (*history)->Tasks(id);
  if (!tasks.ok()) return;
  remote_tail_.Follow(service, *job, *tasks);
  const absl::MutexLock lock(&mutex_);
  remote_open_ = id;
  remote_lines_ = remote_tail_.lines();
}

}  // namespace muster::cli
