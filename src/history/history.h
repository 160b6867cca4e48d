// The history of jobs, tasks and events, stored in <home>/history.db.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "history/history_file.h"
#include "job/event_sink.h"

namespace muster::history {

struct JobFilter {
  bool only_active = false;           // not in a final state
  std::vector<job::JobState> states;  // empty = any
  std::string platform;               // "" = any
  std::string text;                   // a part of the name or the id, in any case; "" = any
  std::vector<std::string> ids;       // of jobs that match whatever `text` says
  int offset = 0;                     // of the newest jobs to skip
  int limit = 0;                      // 0 = all
};

// Not thread-safe, but any number of processes may share the file. Must not be used across fork().
// Changes are atomic and survive kill -9; a job's first change and its verdict also survive power
// loss.
//
// Any call that finds history.db damaged moves it aside, rebuilds it from the jobs' folders and
// reports this to HistoryOptions::notice. Any call may fail with ResourceExhausted (disk full),
// PermissionDenied (not writable), Unavailable (locked by another process) or FailedPrecondition
// (written by a newer muster).
class History final : public job::EventSink {
 public:
  // Opens the history. Creates <home> and history.db, private to this user, if missing.
  static absl::StatusOr<std::unique_ptr<History>> Open(const std::string& home,
                                                       const HistoryOptions& options = {});

  // Adds a job. Returns AlreadyExists if the id is taken.
  absl::Status AddJob(const job::JobRecord& job, const std::vector<job::TaskRecord>& tasks);

  // Inserts or updates the job, its tasks and its events in one transaction. Returns
  // FailedPrecondition if the job belongs to another supervisor or already has another verdict, so
  // that the first writer wins when a job ends while a command marks it as dead. With a verdict,
  // also writes job.json in the job's folder. Assigns Event::sequence: 1, 2, … per job, without
  // gaps. If history.db was replaced since this History last wrote the job, writes all of its tasks
  // again; sequence numbers continue, and earlier events stay in the file that was moved aside.
  absl::Status Apply(const job::StateChange& change) override;

  // Rewrites the jobs that this History has applied changes to, if history.db was replaced.
  // Supervisors call it periodically, so that a quiet job does not stay Unreachable. Costs one
  // stat().
  absl::Status Refresh() override;

  // Returns NotFound if there is no such job.
  absl::StatusOr<job::JobRecord> GetJob(const std::string& id);
  // Returns the tasks, roles in the job's order and then by index. Empty if there is no such job.
  absl::StatusOr<std::vector<job::TaskRecord>> Tasks(const std::string& id);
  // Returns the job and the name of every task, those of the newest job first.
  absl::StatusOr<std::vector<std::pair<std::string, cluster::TaskId>>> TaskNames();
  // Returns at most `limit` (0 = all) events after `after_sequence`, in order.
  absl::StatusOr<std::vector<job::Event>> Events(const std::string& id, int64_t after_sequence = 0,
                                                 int limit = 0);
  // Returns jobs, newest first.
  absl::StatusOr<std::vector<job::JobRecord>> ListJobs(const JobFilter& filter = {});
  // Returns the number of jobs that match, whatever the offset and the limit, in each state.
  absl::StatusOr<std::map<job::JobState, int>> CountJobs(const JobFilter& filter = {});
  // Returns a value that differs from earlier ones if another process or another History has
  // changed the history since. Costs no read of the file if it has not.
  absl::StatusOr<std::string> Version();
  // Returns the job that `reference` denotes: see history/resolve.h.
  absl::StatusOr<job::JobRecord> Resolve(absl::string_view reference);
  // Returns the jobs in a final state except the newest `keep` of them, newest first.
  absl::StatusOr<std::vector<job::JobRecord>> FinishedBeyond(int keep);

  // Deletes a job with its tasks and events, but not its folder. Returns NotFound if there is no
  // such job.
  absl::Status DeleteJob(const std::string& id);

 private:
  // The last state that this History wrote of a job, to write it again into a new file.
  struct CachedJob {
    FileIdentity file;  // the file that contains it
    job::JobRecord job;
    std::vector<std::string> roles;  // in the job's order
    std::map<cluster::TaskId, job::TaskRecord> tasks;
    int64_t last_sequence = 0;
  };

  History(std::string home, HistoryOptions options);

  template <typename T>
  absl::StatusOr<T> Query(absl::FunctionRef<absl::StatusOr<T>(Database&)> query);
  absl::Status Write(Database& database, const job::StateChange& change);
  absl::Status RewriteCached(Database& database);
  static void MergeTasks(const std::vector<job::TaskRecord>& tasks, CachedJob& cached);
  static std::vector<job::TaskRecord> InOrder(const CachedJob& cached);
  static void SaveToFolder(const CachedJob& cached);

  HistoryFile file_;
  std::map<std::string, CachedJob> cached_;  // by id
};

}  // namespace muster::history
