// What ran: every job, its tasks and its events, kept in <home>/history.db.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "history/history_file.h"
#include "job/event_sink.h"

namespace muster {

struct JobFilter {
  bool only_active = false;  // not in a final state
  int limit = 0;             // 0 = all
};

// Not thread-safe, but the file is shared by any number of processes; must not be used across
// fork(). A change that was acknowledged survives kill -9 and power loss, and is seen whole or not
// at all.
//
// A damaged history.db is moved aside and rebuilt from the jobs' folders, whichever call finds the
// damage; HistoryOptions::notice says so. Every call may fail with ResourceExhausted (the disk is
// full), PermissionDenied (not writable), Unavailable (another process holds the file),
// FailedPrecondition (a newer muster wrote it).
class History final : public EventSink {
 public:
  // Creates <home> and history.db when they are missing, for this user only.
  static absl::StatusOr<std::unique_ptr<History>> Open(const std::string& home,
                                                       const HistoryOptions& options = {});

  // AlreadyExists for an id that is known.
  absl::Status AddJob(const JobRecord& job, const std::vector<TaskRecord>& tasks);

  // Writes the job whether or not it is known. FailedPrecondition when the job has passed on to
  // another supervisor, or has another verdict already: so of a job that ends and somebody who
  // takes it for dead the first wins. With a verdict, job.json in the job's folder is written too.
  // Event::sequence is given here: 1, 2, … per job, without gaps. When history.db was replaced
  // since this History wrote the job, all of its tasks are written again; numbers go on from the
  // last that was given, and earlier events stay in the file that was moved aside.
  absl::Status Apply(const StateChange& change) override;

  // Writes the jobs that this History applied changes to again when history.db was replaced. A
  // supervisor calls it now and then, so that a quiet job does not stay Unreachable; costs one
  // stat().
  absl::Status Refresh() override;

  // NotFound for an id that is not known.
  absl::StatusOr<JobRecord> GetJob(const std::string& id);
  // Roles in the job's order, tasks by index. Empty for an id that is not known.
  absl::StatusOr<std::vector<TaskRecord>> Tasks(const std::string& id);
  // At most `limit` (0 = all) events after `after_sequence`, in order.
  absl::StatusOr<std::vector<Event>> Events(const std::string& id, int64_t after_sequence = 0,
                                            int limit = 0);
  // Newest first.
  absl::StatusOr<std::vector<JobRecord>> ListJobs(const JobFilter& filter = {});
  // The job that a user means: see history/resolve.h.
  absl::StatusOr<JobRecord> Resolve(absl::string_view reference);
  // The jobs in a final state except the newest `keep` of them, newest first.
  absl::StatusOr<std::vector<JobRecord>> FinishedBeyond(int keep);

  // With its tasks and events; its folder is left alone. NotFound for an id that is not known.
  absl::Status DeleteJob(const std::string& id);

 private:
  // All that this History wrote of a job, to write it again into a new file.
  struct Known {
    FileIdentity file;  // that holds it
    JobRecord job;
    std::vector<std::string> roles;  // in the job's order
    std::map<TaskId, TaskRecord> tasks;
    int64_t last_sequence = 0;
  };

  History(std::string home, HistoryOptions options);

  template <typename T>
  absl::StatusOr<T> Query(absl::FunctionRef<absl::StatusOr<T>(Database&)> query);
  absl::Status Write(Database& database, const StateChange& change);
  absl::Status WriteKnown(Database& database);
  static void Remember(const std::vector<TaskRecord>& tasks, Known& known);
  static std::vector<TaskRecord> InOrder(const Known& known);
  static void SaveToFolder(const Known& known);

  HistoryFile file_;
  std::map<std::string, Known> known_;  // by id
};

}  // namespace muster
