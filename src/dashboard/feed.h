// The live state of jobs for the browsers that watch them.
//
// One thread polls the history and the files of watched jobs, whatever the number of viewers. It
// keeps the newest state of each job, not a queue of changes, under a revision that grows; a viewer
// asks for everything after the revision that it has. A slow viewer thus skips states, costs no
// memory, and delays nobody.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "dashboard/services.h"
#include "job/event_sink.h"
#include "nlohmann/json.hpp"

namespace muster::dashboard {

// What has changed since the revision of a viewer.
struct FeedUpdate {
  int64_t revision = 0;
  bool ended = false;                // the feed has stopped
  std::vector<std::string> changed;  // JobSummary texts
  std::vector<std::string> removed;  // ids
  // Of the watched job; "" = unchanged.
  std::string details;
  bool log_grew = false;
  bool metrics_grew = false;
};

// Thread-safe. Joins its threads when it is destroyed.
class Feed {
 public:
  // `services` must outlive this.
  explicit Feed(ServicePool& services, absl::Duration interval = absl::Milliseconds(500));
  ~Feed();
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // A viewer, and the job that it watches; "" = none.
  class Viewer {
   public:
    Viewer(Feed& feed, std::string job);
    ~Viewer();
    Viewer(const Viewer&) = delete;
    Viewer& operator=(const Viewer&) = delete;

    // Waits for a change of any job, at most `timeout`, or until the feed ends. The first updates
    // have the unfinished jobs and the watched job.
    FeedUpdate Next(absl::Duration timeout);

   private:
    Feed& feed_;
    const std::string job_;
    int64_t revision_ = 0;
  };

  // Returns the job with the state that its platform last reported: kUnreachable is not stored in
  // the history.
  job::JobRecord WithReachability(job::JobRecord job) const;
  // Makes the next poll read the job again, for changes outside the history, such as notes.
  void Touch(const std::string& id);
  // Wakes all viewers. Next() does not wait any more.
  void Stop();

 private:
  // A text that a viewer may have seen, and the revision at which it changed.
  struct Versioned {
    std::string text;
    int64_t revision = 0;
  };
  struct Watched {
    int viewers = 0;
    Versioned details, log, metrics;  // texts of `log` and `metrics`: the sizes of their files
  };

  void PollLoop();
  void RefreshLoop();
  // Waits `duration`. Returns false if the feed ends.
  bool Sleep(absl::Duration duration);
  void Poll(jobs::Service& service);
  absl::Status FindChanges(jobs::Service& service, std::set<std::string>& changed,
                           std::set<std::string>& removed);
  void UpdateSummaries(jobs::Service& service, const std::set<std::string>& changed);
  void UpdateWatched(jobs::Service& service, const std::string& id, bool records_changed);
  void RefreshJobs(jobs::Service& service, bool slow_too);
  void Set(Versioned& versioned, std::string text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  FeedUpdate Collect(const std::string& job, int64_t revision) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ServicePool& services_;
  const absl::Duration interval_;

  mutable absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  int viewers_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t revision_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<std::string, Versioned> summaries_ ABSL_GUARDED_BY(mutex_);  // unfinished and changed
  std::map<std::string, int64_t> removed_ ABSL_GUARDED_BY(mutex_);      // id to revision
  std::map<std::string, Watched> watched_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> touched_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> unreachable_ ABSL_GUARDED_BY(mutex_);

  // Used by the polling thread only.
  std::string version_;          // of the history
  std::set<std::string> known_;  // the ids of all jobs
  std::set<std::string> active_;

  std::thread poller_;
  std::thread refresher_;
};

}  // namespace muster::dashboard
