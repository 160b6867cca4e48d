#include "dashboard/metrics_cache.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "job/states.h"
#include "jobs/results/metrics.h"
#include "metrics/down_sample.h"

namespace muster::dashboard {
namespace {

constexpr size_t kMaxPoints = 1'000'000;  // of all jobs together: 32 MB

CachedMetrics Reduced(jobs::JobMetrics found) {
  CachedMetrics result{.problems = std::move(found.problems)};
  for (auto& [name, points] : found.series) {
    result.series.push_back({.name = name,
                             .count = points.size(),
                             .extremes = metrics::ExtremesOf(points),
                             .points = metrics::DownSample(points, kMaxSeriesPoints)});
    std::vector<metrics::Point>().swap(points);
  }
  return result;
}

size_t PointsIn(const CachedMetrics& metrics) {
  size_t points = 0;
  for (const CachedSeries& series : metrics.series) points += series.points.size();
  return points;
}

}  // namespace

const CachedSeries* CachedMetrics::Find(const std::string& name) const {
  const auto found = std::lower_bound(
      series.begin(), series.end(), name,
      [](const CachedSeries& one, const std::string& wanted) { return one.name < wanted; });
  return found == series.end() || found->name != name ? nullptr : &*found;
}

std::shared_ptr<const CachedMetrics> MetricsCache::Find(const job::JobRecord& job) {
  const absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(job.id);
  if (found == entries_.end()) return nullptr;
  Entry& entry = found->second;
  const bool fresh =
      entry.final == job::IsFinal(job.state) && (entry.final || clock_.Now() < entry.expires);
  if (!fresh) return nullptr;
  entry.used = clock_.Now();
  return entry.metrics;
}

void MetricsCache::Keep(const std::string& id, Entry entry) {
  const absl::MutexLock lock(&mutex_);
  const auto drop = [this](std::map<std::string, Entry>::iterator it)
                        ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                          points_ -= it->second.points;
                          entries_.erase(it);
                        };
  if (const auto old = entries_.find(id); old != entries_.end()) drop(old);
  while (!entries_.empty() && points_ + entry.points > kMaxPoints) {
    drop(std::min_element(entries_.begin(), entries_.end(),
                          [](auto& a, auto& b) { return a.second.used < b.second.used; }));
  }
  points_ += entry.points;
  entries_.emplace(id, std::move(entry));
}

absl::StatusOr<std::shared_ptr<const CachedMetrics>> MetricsCache::Get(jobs::Service& service,
                                                                       const job::JobRecord& job) {
  if (auto cached = Find(job)) return cached;
  const absl::Time begin = clock_.Now();
  MUSTER_ASSIGN_OR_RETURN(jobs::JobMetrics found, jobs::ReadMetrics(service, job));
  const absl::Time end = clock_.Now();
  auto metrics = std::make_shared<const CachedMetrics>(Reduced(std::move(found)));
  Keep(job.id, {.metrics = metrics,
                .final = job::IsFinal(job.state),
                .expires = end + std::max(absl::Seconds(1), 5 * (end - begin)),
                .points = PointsIn(*metrics),
                .used = end});
  return metrics;
}

}  // namespace muster::dashboard
