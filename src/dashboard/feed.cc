#include "dashboard/feed.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "dashboard/views.h"
#include "job/states.h"
#include "jobs/control/refresh.h"
#include "platform/capabilities.h"
#include "supervise/job_dir.h"

namespace muster::dashboard {
namespace {

constexpr absl::Duration kRefreshInterval = absl::Seconds(2);
constexpr int kSlowRefresh = 5;         // every so many intervals, for platforms that are asked
constexpr size_t kMaxSummaries = 2000;  // of finished jobs that are kept for viewers
constexpr int kMaxFiles = 1000;         // whose sizes are read

// Returns a text that changes when a file below `folder` is created or grows.
std::string SizesIn(const std::string& folder) {
  std::string sizes;
  std::error_code error;
  int files = 0;
  for (std::filesystem::recursive_directory_iterator it(folder, error), end;
       !error && it != end && ++files < kMaxFiles; it.increment(error)) {
    if (it->is_regular_file(error)) absl::StrAppend(&sizes, it->file_size(error), " ");
  }
  return sizes;
}

// Likewise for the metrics of a job: its metrics files and its model dir, if that is local.
std::string MetricsSizes(const job::JobRecord& job, const std::vector<job::TaskRecord>& tasks) {
  std::string sizes = job.model_dir.empty() ? "" : SizesIn(job.model_dir);
  std::error_code error;
  const supervise::JobDir dir(job.directory);
  for (const job::TaskRecord& task : tasks) {
    const auto size = std::filesystem::file_size(dir.metrics(task.id), error);
    if (!error) absl::StrAppend(&sizes, size, " ");
  }
  return sizes;
}

std::string Dump(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Feed::Feed(ServicePool& services, absl::Duration interval)
    : services_(services),
      interval_(interval),
      poller_([this] { PollLoop(); }),
      refresher_([this] { RefreshLoop(); }) {}

Feed::~Feed() {
  Stop();
  poller_.join();
  refresher_.join();
}

void Feed::Stop() {
  const absl::MutexLock lock(&mutex_);
  stopped_ = true;
}

bool Feed::Sleep(absl::Duration duration) {
  const absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(&stopped_), duration);
  return !stopped_;
}

void Feed::PollLoop() {
  ServicePool::Lease service = services_.Take();
  do {
    Poll(*service);
  } while (Sleep(interval_));
}

void Feed::RefreshLoop() {
  ServicePool::Lease service = services_.Take();
  for (int round = 0; Sleep(kRefreshInterval); ++round) {
    bool watched = false;
    {
      const absl::MutexLock lock(&mutex_);
      watched = viewers_ > 0;
    }
    RefreshJobs(*service, watched && round % kSlowRefresh == 0);
  }
}

// Jobs that a supervisor reports on need a look only if it died. Other platforms are asked over the
// network, so less often, and only for a viewer.
void Feed::RefreshJobs(jobs::Service& service, bool slow_too) {
  const auto history = service.history();
  if (!history.ok()) return;
  auto jobs = (*history)->ListJobs({.only_active = true});
  if (!jobs.ok()) return;
  for (job::JobRecord& job : *jobs) {
    const auto platform = service.platform(job.platform);
    if (!platform.ok()) continue;
    const bool asked = platform::CapabilityOf<platform::StateSource>(**platform) != nullptr;
    if (asked && !slow_too) continue;
    jobs::Refresh(service, job).IgnoreError();
    const absl::MutexLock lock(&mutex_);
    if (stopped_) return;
    const bool lost = job.state == job::JobState::kUnreachable;
    if (lost ? unreachable_.insert(job.id).second : unreachable_.erase(job.id) > 0) {
      touched_.insert(job.id);
    }
  }
}

job::JobRecord Feed::WithReachability(job::JobRecord job) const {
  const absl::MutexLock lock(&mutex_);
  if (unreachable_.contains(job.id) && !job::IsFinal(job.state)) {
    job.state = job::JobState::kUnreachable;
  }
  return job;
}

void Feed::Touch(const std::string& id) {
  const absl::MutexLock lock(&mutex_);
  touched_.insert(id);
}

// Compares the history with what the viewers have been shown. Reads all jobs only if the number of
// jobs shows that some were removed.
absl::Status Feed::FindChanges(jobs::Service& service, std::set<std::string>& changed,
                               std::set<std::string>& removed) {
  MUSTER_ASSIGN_OR_RETURN(history::History * history, service.history());
  MUSTER_ASSIGN_OR_RETURN(const std::string version, history->Version());
  if (version == version_) return absl::OkStatus();
  const bool first = version_.empty();
  std::set<std::string> active;
  MUSTER_ASSIGN_OR_RETURN(const auto unfinished, history->ListJobs({.only_active = true}));
  for (const job::JobRecord& job : unfinished) active.insert(job.id);
  changed.insert(active.begin(), active.end());
  for (const std::string& id : active_) {
    if (!active.contains(id)) changed.insert(id);
  }
  MUSTER_ASSIGN_OR_RETURN(const auto counts, history->CountJobs());
  size_t total = 0;
  for (const auto& [state, count] : counts) total += count;
  std::set<std::string> known = known_;
  known.insert(active.begin(), active.end());
  if (first || known.size() != total) {
    MUSTER_ASSIGN_OR_RETURN(const auto all, history->ListJobs());
    known.clear();
    for (const job::JobRecord& job : all) {
      known.insert(job.id);
      if (!first && !known_.contains(job.id)) changed.insert(job.id);
    }
    for (const std::string& id : known_) {
      if (!known.contains(id)) removed.insert(id);
    }
  }
  known_ = std::move(known);
  active_ = std::move(active);
  version_ = version;
  return absl::OkStatus();
}

void Feed::Set(Versioned& versioned, std::string text) {
  if (versioned.text == text && versioned.revision > 0) return;
  versioned = {.text = std::move(text), .revision = ++revision_};
}

void Feed::UpdateSummaries(jobs::Service& service, const std::set<std::string>& changed) {
  const auto history = service.history();
  if (!history.ok() || changed.empty()) return;
  const auto notes = jobs::ReadNotes(service.home());
  for (const std::string& id : changed) {
    const auto job = (*history)->GetJob(id);
    if (!job.ok()) continue;
    const std::string text =
        Dump(SummaryOf(service, WithReachability(*job), jobs::NotesOf(notes, id)));
    const absl::MutexLock lock(&mutex_);
    Set(summaries_[id], text);
  }
}

void Feed::UpdateWatched(jobs::Service& service, const std::string& id, bool records_changed) {
  const auto history = service.history();
  if (!history.ok()) return;
  const auto job = (*history)->GetJob(id);
  const auto tasks = (*history)->Tasks(id);
  if (!job.ok() || !tasks.ok()) return;
  // Details of jobs elsewhere may cost requests to their platform.
  const auto platform = service.platform(job->platform);
  const bool here = platform.ok() && (*platform)->traits().runs_here;
  absl::StatusOr<nlohmann::json> details = absl::UnavailableError("unchanged");
  if (here || records_changed) {
    const auto notes = jobs::ReadNotes(service.home());
    details = DetailsOf(service, WithReachability(*job), jobs::NotesOf(notes, id));
  }
  const std::string log = SizesIn(supervise::JobDir(job->directory).logs());
  const std::string metrics = MetricsSizes(*job, *tasks);
  const absl::MutexLock lock(&mutex_);
  const auto found = watched_.find(id);
  if (found == watched_.end()) return;
  if (details.ok()) Set(found->second.details, Dump(*details));
  Set(found->second.log, log);
  Set(found->second.metrics, metrics);
}

void Feed::Poll(jobs::Service& service) {
  std::set<std::string> changed, removed;
  std::map<std::string, bool> watched;  // true: without details yet
  {
    const absl::MutexLock lock(&mutex_);
    if (viewers_ == 0) return;
    changed = std::exchange(touched_, {});
    for (const auto& [id, watch] : watched_) watched[id] = watch.details.revision == 0;
  }
  const std::set<std::string> touched = changed;
  const std::string version = version_;
  FindChanges(service, changed, removed).IgnoreError();  // tried again by the next poll
  changed.insert(active_.begin(), active_.end());        // their progress is not in the history
  UpdateSummaries(service, changed);
  for (const auto& [id, is_new] : watched) {
    UpdateWatched(service, id, is_new || version != version_ || touched.contains(id));
  }
  const absl::MutexLock lock(&mutex_);
  for (const std::string& id : removed) {
    summaries_.erase(id);
    removed_[id] = ++revision_;
  }
  if (removed_.size() > kMaxSummaries) removed_.clear();
  // Viewers that are further behind reload the list.
  for (auto it = summaries_.begin(); it != summaries_.end() && summaries_.size() > kMaxSummaries;) {
    it = active_.contains(it->first) ? std::next(it) : summaries_.erase(it);
  }
}

FeedUpdate Feed::Collect(const std::string& job, int64_t revision) const {
  FeedUpdate update{.revision = revision_, .ended = stopped_};
  for (const auto& [id, summary] : summaries_) {
    if (summary.revision > revision) update.changed.push_back(summary.text);
  }
  for (const auto& [id, removed] : removed_) {
    if (removed > revision) update.removed.push_back(id);
  }
  const auto found = watched_.find(job);
  if (found == watched_.end()) return update;
  const Watched& watched = found->second;
  if (watched.details.revision > revision) update.details = watched.details.text;
  update.log_grew = watched.log.revision > revision;
  update.metrics_grew = watched.metrics.revision > revision;
  return update;
}

Feed::Viewer::Viewer(Feed& feed, std::string job) : feed_(feed), job_(std::move(job)) {
  const absl::MutexLock lock(&feed_.mutex_);
  ++feed_.viewers_;
  if (!job_.empty()) ++feed_.watched_[job_].viewers;
}

Feed::Viewer::~Viewer() {
  const absl::MutexLock lock(&feed_.mutex_);
  --feed_.viewers_;
  const auto found = feed_.watched_.find(job_);
  if (found != feed_.watched_.end() && --found->second.viewers == 0) feed_.watched_.erase(found);
}

FeedUpdate Feed::Viewer::Next(absl::Duration timeout) {
  const absl::MutexLock lock(&feed_.mutex_);
  const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(feed_.mutex_) {
    return feed_.stopped_ || feed_.revision_ > revision_;
  };
  feed_.mutex_.AwaitWithTimeout(absl::Condition(&ready), timeout);
  FeedUpdate update = feed_.Collect(job_, revision_);
  revision_ = update.revision;
  return update;
}

}  // namespace muster::dashboard
