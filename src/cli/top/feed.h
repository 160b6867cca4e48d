// Reads jobs for `muster top` in the background, so that neither a slow disk nor a platform that
// does not respond delays the screen.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/event_fd.h"
#include "cli/context.h"
#include "cli/top/model.h"
#include "jobs/service.h"
#include "platform/registration.h"
#include "supervise/log/log_reader.h"

namespace muster::cli {

// The last lines of a job's output. Not thread-safe.
class OutputTail {
 public:
  // Follows `job`; starts anew if it is another one. `tasks` are all of its tasks.
  void Follow(jobs::Service& service, const job::JobRecord& job,
              const std::vector<job::TaskRecord>& tasks);
  void Close();
  std::vector<OutputLine> lines() const { return {lines_.begin(), lines_.end()}; }

 private:
  std::string job_;
  std::unique_ptr<supervise::LogStream> stream_;
  std::deque<OutputLine> lines_;
};

// Two threads, each with its own Service: the reader reads the history and files of this machine,
// the observer asks platforms that keep the state of jobs themselves and requests the end of jobs.
// Observed changes reach the reader through the history.
class TopFeed {
 public:
  struct Snapshot {
    JobList jobs;  // null until read
    JobDetails details;
    std::optional<OpenJob> open;
    std::string message;  // the newest notice; "" = none since the last Take()
  };

  static absl::StatusOr<std::unique_ptr<TopFeed>> Start(Context& context);
  ~TopFeed();

  // Becomes readable when there is a new snapshot.
  int fd() const { return changed_.get(); }
  Snapshot Take();
  // Sets the jobs whose details are wanted, and the opened job ("" = none).
  void Want(std::vector<std::string> visible, std::string open);
  void Stop(std::string job);

 private:
  struct Request {
    std::vector<std::string> visible;
    std::string open;
    bool operator==(const Request&) const = default;
  };
  // A service of one thread, and the platforms that it uses.
  struct Backend {
    Backend(Context& context, TopFeed& feed);
    platform::Registry platforms;
    jobs::Service service;
  };

  TopFeed(Context& context, base::EventFd changed);

  void Notify(const std::string& text);
  void Read(const std::stop_token& stop);
  absl::Status ReadOnce(jobs::Service& service);
  absl::Status ReadJobs(jobs::Service& service);
  JobDetail DetailOf(const job::JobRecord& job, const std::vector<job::TaskRecord>& tasks);
  absl::Status ReadDetails(jobs::Service& service, const Request& request);
  absl::Status ReadOpen(jobs::Service& service, const std::string& id);
  void Observe(const std::stop_token& stop);
  void ObserveOnce(jobs::Service& service);
  void StopWanted(jobs::Service& service);
  void FollowRemote(jobs::Service& service);

  const base::EventFd changed_;
  absl::Mutex mutex_;
  Request request_ ABSL_GUARDED_BY(mutex_);
  bool is_new_ ABSL_GUARDED_BY(mutex_) = false;  // the reader has not seen request_
  std::vector<std::string> stops_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  Snapshot snapshot_ ABSL_GUARDED_BY(mutex_);
  // Jobs whose platform does not respond, and the reason. The history does not contain it.
  std::map<std::string, std::string> unreachable_ ABSL_GUARDED_BY(mutex_);
  std::string remote_open_ ABSL_GUARDED_BY(mutex_);  // the job of remote_lines_
  std::vector<OutputLine> remote_lines_ ABSL_GUARDED_BY(mutex_);

  // Of the reader.
  std::map<std::string, job::JobState> active_;  // by id, at the last read
  absl::Time listed_ = absl::InfinitePast();     // when all jobs were read
  JobDetails finished_;                          // details of finished jobs, which do not change
  std::map<std::string, jobs::ProgressMeter> meters_;
  OutputTail tail_;
  // Of the observer.
  OutputTail remote_tail_;

  Backend reader_backend_;
  Backend observer_backend_;
  std::jthread reader_;  // the threads start last and end first
  std::jthread observer_;
};

}  // namespace muster::cli
