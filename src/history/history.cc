#include "history/history.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "history/job_folder.h"
#include "history/resolve.h"
#include "history/rows.h"

namespace muster {
namespace {

// A job belongs to who wrote it last. Its submitter hands it over to its supervisor while it is
// Pending; after that a change by anybody else comes too late, and so does a second verdict.
absl::Status CheckMayReplace(Database& database, const JobRecord& job) {
  MUSTER_ASSIGN_OR_RETURN(Statement query,
                          PrepareJobs(database, " WHERE id = ?1 AND recovered = 0"));
  query.Bind(job.id);
  MUSTER_ASSIGN_OR_RETURN(const std::vector<JobRecord> rows, ReadJobs(query));
  if (rows.empty() || rows[0].state == JobState::kPending) return absl::OkStatus();
  const JobRecord& stored = rows[0];
  const bool second_verdict =
      IsFinal(stored.state) && IsFinal(job.state) && stored.state != job.state;
  if (stored.supervisor == job.supervisor && !second_verdict) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(job.id, " is ", ToString(stored.state), " already, or somebody else's"));
}

}  // namespace

History::History(std::string home, HistoryOptions options)
    : file_(std::move(home), std::move(options)) {}

absl::StatusOr<std::unique_ptr<History>> History::Open(const std::string& home,
                                                       const HistoryOptions& options) {
  std::unique_ptr<History> history(new History(home, options));
  MUSTER_RETURN_IF_ERROR(history->file_.Use([](Database&) { return absl::OkStatus(); }));
  return history;
}

template <typename T>
absl::StatusOr<T> History::Query(absl::FunctionRef<absl::StatusOr<T>(Database&)> query) {
  absl::StatusOr<T> result;
  MUSTER_RETURN_IF_ERROR(file_.Use([&](Database& database) {
    result = query(database);
    return result.status();
  }));
  return result;
}

absl::Status History::AddJob(const JobRecord& job, const std::vector<TaskRecord>& tasks) {
  return file_.Use([&](Database& database) -> absl::Status {
    // Nobody was told of the job yet; its first change is what its submission waits for.
    MUSTER_ASSIGN_OR_RETURN(Transaction transaction,
                            Transaction::Begin(database, Durability::kLazy));
    MUSTER_ASSIGN_OR_RETURN(const bool added, InsertJob(database, job));
    if (!added)
      return absl::AlreadyExistsError(absl::StrCat("there is a job ", job.id, " already"));
    MUSTER_RETURN_IF_ERROR(UpsertTasks(database, job.id, tasks));
    return transaction.Commit();
  });
}

absl::Status History::Apply(const StateChange& change) {
  return file_.Use([&](Database& database) { return Write(database, change); });
}

absl::Status History::Write(Database& database, const StateChange& change) {
  const std::string& id = change.job.id;
  Known known;
  const auto found = known_.find(id);
  const bool is_known = found != known_.end();
  // That a job exists and how it ended must not be lost. What it did in between ends with the
  // machine anyway: a job does not outlive a loss of power.
  const bool lasting = !is_known || IsFinal(change.job.state);
  MUSTER_ASSIGN_OR_RETURN(
      Transaction transaction,
      Transaction::Begin(database, lasting ? Durability::kSynced : Durability::kLazy));
  MUSTER_RETURN_IF_ERROR(CheckMayReplace(database, change.job));
  MUSTER_RETURN_IF_ERROR(UpsertJob(database, change.job));
  if (is_known && found->second.file != file_.identity()) {
    MUSTER_RETURN_IF_ERROR(UpsertTasks(database, id, InOrder(found->second)));
  }
  MUSTER_RETURN_IF_ERROR(UpsertTasks(database, id, change.tasks));
  MUSTER_RETURN_IF_ERROR(DeleteTasks(database, id, change.removed));
  MUSTER_ASSIGN_OR_RETURN(
      const int64_t last_sequence,
      AppendEvents(database, id, change.events, is_known ? found->second.last_sequence : 0));
  if (!is_known) {
    // Another process may have added the job: what it wrote is part of the whole.
    MUSTER_ASSIGN_OR_RETURN(const std::vector<TaskRecord> tasks, SelectTasks(database, id));
    Remember(tasks, known);
  }
  MUSTER_RETURN_IF_ERROR(transaction.Commit());

  Known& kept = is_known ? found->second : known_.emplace(id, std::move(known)).first->second;
  Remember(change.tasks, kept);
  for (const TaskId& task : change.removed) kept.tasks.erase(task);
  kept.file = file_.identity();
  kept.job = change.job;
  kept.last_sequence = last_sequence;
  if (IsFinal(kept.job.state)) SaveToFolder(kept);
  return absl::OkStatus();
}

// The verdict beside the job's logs, so that it is known even without this database. Best effort: a
// folder that was removed, or a full disk, takes nothing from what was just committed.
void History::SaveToFolder(const Known& known) {
  if (known.job.directory.empty()) return;
  const std::string path = JoinPath(known.job.directory, kJobFolderFile);
  ReplaceFile(path, JobFolderToJson(known.job, InOrder(known))).IgnoreError();
}

absl::Status History::Refresh() {
  return file_.Use([&](Database& database) { return WriteKnown(database); });
}

absl::Status History::WriteKnown(Database& database) {
  for (const auto& [id, known] : known_) {
    if (known.file == file_.identity()) continue;
    // A change without news brings the file up to date.
    StateChange change;
    change.job = known.job;
    MUSTER_RETURN_IF_ERROR(Write(database, change));
  }
  return absl::OkStatus();
}

void History::Remember(const std::vector<TaskRecord>& tasks, Known& known) {
  for (const TaskRecord& task : tasks) {
    if (std::find(known.roles.begin(), known.roles.end(), task.id.role) == known.roles.end()) {
      known.roles.push_back(task.id.role);
    }
    known.tasks[task.id] = task;
  }
}

std::vector<TaskRecord> History::InOrder(const Known& known) {
  std::vector<TaskRecord> tasks;
  for (const std::string& role : known.roles) {
    for (auto it = known.tasks.lower_bound({role, 0});
         it != known.tasks.end() && it->first.role == role; ++it) {
      tasks.push_back(it->second);
    }
  }
  return tasks;
}

absl::StatusOr<JobRecord> History::GetJob(const std::string& id) {
  return Query<JobRecord>([&](Database& database) -> absl::StatusOr<JobRecord> {
    MUSTER_ASSIGN_OR_RETURN(Statement query, PrepareJobs(database, "WHERE id = ?"));
    query.Bind(id);
    MUSTER_ASSIGN_OR_RETURN(std::vector<JobRecord> jobs, ReadJobs(query));
    if (jobs.empty()) return absl::NotFoundError(absl::StrCat("there is no job ", id));
    return std::move(jobs.front());
  });
}

absl::StatusOr<std::vector<TaskRecord>> History::Tasks(const std::string& id) {
  return Query<std::vector<TaskRecord>>(
      [&](Database& database) { return SelectTasks(database, id); });
}

absl::StatusOr<std::vector<Event>> History::Events(const std::string& id, int64_t after_sequence,
                                                   int limit) {
  return Query<std::vector<Event>>(
      [&](Database& database) { return SelectEvents(database, id, after_sequence, limit); });
}

absl::StatusOr<std::vector<JobRecord>> History::ListJobs(const JobFilter& filter) {
  return Query<std::vector<JobRecord>>(
      [&](Database& database) -> absl::StatusOr<std::vector<JobRecord>> {
        MUSTER_ASSIGN_OR_RETURN(
            Statement query,
            PrepareJobs(database, absl::StrCat(filter.only_active ? "WHERE final = 0" : "",
                                               kNewestFirst, "LIMIT ?")));
        query.Bind(filter.limit > 0 ? filter.limit : -1);
        return ReadJobs(query);
      });
}

absl::StatusOr<JobRecord> History::Resolve(absl::string_view reference) {
  return Query<JobRecord>([&](Database& database) { return ResolveJob(database, reference); });
}

absl::StatusOr<std::vector<JobRecord>> History::FinishedBeyond(int keep) {
  return Query<std::vector<JobRecord>>(
      [&](Database& database) -> absl::StatusOr<std::vector<JobRecord>> {
        MUSTER_ASSIGN_OR_RETURN(Statement query,
                                PrepareJobs(database, absl::StrCat("WHERE final = 1", kNewestFirst,
                                                                   "LIMIT -1 OFFSET ?")));
        query.Bind(std::max(keep, 0));
        return ReadJobs(query);
      });
}

absl::Status History::DeleteJob(const std::string& id) {
  MUSTER_RETURN_IF_ERROR(file_.Use([&](Database& database) -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(Statement remove, database.Prepare("DELETE FROM jobs WHERE id = ?"));
    remove.Bind(id);
    MUSTER_RETURN_IF_ERROR(remove.Run());
    if (database.Changes() == 0) return absl::NotFoundError(absl::StrCat("there is no job ", id));
    return absl::OkStatus();
  }));
  known_.erase(id);
  return absl::OkStatus();
}

}  // namespace muster
