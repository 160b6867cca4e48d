// Caches the metrics of jobs, reduced for display.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "job/event_sink.h"
#include "jobs/service.h"
#include "metrics/series.h"

namespace muster::dashboard {

inline constexpr size_t kMaxSeriesPoints = 20'000;  // that are kept of a series

// A metric of a job.
struct CachedSeries {
  std::string name;
  size_t count = 0;  // of all points
  metrics::Extremes extremes;
  std::vector<metrics::Point> points;  // at most kMaxSeriesPoints
};

struct CachedMetrics {
  std::vector<CachedSeries> series;  // ordered by name
  std::vector<std::string> problems;

  const CachedSeries* Find(const std::string& name) const;
};

// Thread-safe. Reads the metrics of a finished job once, and those of a running job again when they
// are older than a second or than a few times the duration of the last reading.
class MetricsCache {
 public:
  explicit MetricsCache(const base::Clock& clock = base::Clock::Real()) : clock_(clock) {}

  absl::StatusOr<std::shared_ptr<const CachedMetrics>> Get(jobs::Service& service,
                                                           const job::JobRecord& job);

 private:
  struct Entry {
    std::shared_ptr<const CachedMetrics> metrics;
    bool final = false;  // the job had ended
    absl::Time expires;
    size_t points = 0;
    absl::Time used;
  };
  std::shared_ptr<const CachedMetrics> Find(const job::JobRecord& job);
  void Keep(const std::string& id, Entry entry);

  const base::Clock& clock_;
  absl::Mutex mutex_;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);  // by job id
  size_t points_ ABSL_GUARDED_BY(mutex_) = 0;                     // of all entries
};

}  // namespace muster::dashboard
