#include "history/history.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "history/job_folder.h"
#include "history/resolve.h"
#include "history/rows.h"

namespace muster::history {
namespace {

// A job belongs to the process that wrote it last. Its submitter hands it over to its supervisor
// while it is Pending; after that, changes by other processes and second verdicts are rejected.
absl::Status CheckMayReplace(Database& database, const job::JobRecord& job) {
  MUSTER_ASSIGN_OR_RETURN(Statement query,
                          PrepareJobs(database, " WHERE id = ?1 AND recovered = 0"));
  query.Bind(job.id);
  MUSTER_ASSIGN_OR_RETURN(const std::vector<job::JobRecord> rows, ReadJobs(query));
  if (rows.empty() || rows[0].state == job::JobState::kPending) return absl::OkStatus();
  const job::JobRecord& stored = rows[0];
  const bool second_verdict =
      job::IsFinal(stored.state) && job::IsFinal(job.state) && stored.state != job.state;
  if (stored.supervisor == job.supervisor && !second_verdict) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      job.id, " is already ", job::ToString(stored.state), " or belongs to another process"));
}

// A WHERE clause, and the values of its parameters.
struct Condition {
  std::string sql;
  std::vector<std::string> values;
};

// Returns the operand of LIKE that matches `text` anywhere.
std::string LikePattern(absl::string_view text) {
  return absl::StrCat("%", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"%", "\\%"}, {"_", "\\_"}}),
                      "%");
}

std::string Placeholders(size_t count) {
  return absl::StrCat("(", absl::StrJoin(std::vector<std::string>(count, "?"), ", "), ")");
}

Condition ConditionOf(const JobFilter& filter) {
  std::vector<std::string> terms;
  Condition condition;
  std::vector<std::string>& values = condition.values;
  if (filter.only_active) terms.emplace_back("final = 0");
  if (!filter.states.empty()) {
    terms.push_back(absl::StrCat("state IN ", Placeholders(filter.states.size())));
    for (const job::JobState state : filter.states) values.emplace_back(job::ToString(state));
  }
  if (!filter.platform.empty()) {
    terms.emplace_back("platform = ?");
    values.push_back(filter.platform);
  }
  if (!filter.text.empty()) {
    terms.push_back(absl::StrCat("(name LIKE ? ESCAPE '\\' OR id LIKE ? ESCAPE '\\' OR id IN ",
                                 Placeholders(filter.ids.size()), ")"));
    values.insert(values.end(), 2, LikePattern(filter.text));
    values.insert(values.end(), filter.ids.begin(), filter.ids.end());
  }
  if (!terms.empty()) condition.sql = absl::StrCat("WHERE ", absl::StrJoin(terms, " AND "));
  return condition;
}

int LimitOf(const JobFilter& filter) { return filter.limit > 0 ? filter.limit : -1; }

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

absl::Status History::AddJob(const job::JobRecord& job, const std::vector<job::TaskRecord>& tasks) {
  return file_.Use([&](Database& database) -> absl::Status {
    // Lazy is enough: nothing was acknowledged yet. The submission waits for the job's first
    // change.
    MUSTER_ASSIGN_OR_RETURN(Transaction transaction,
                            Transaction::Begin(database, Durability::kLazy));
    MUSTER_ASSIGN_OR_RETURN(const bool added, InsertJob(database, job));
    if (!added) return absl::AlreadyExistsError(absl::StrCat("job ", job.id, " already exists"));
    MUSTER_RETURN_IF_ERROR(UpsertTasks(database, job.id, tasks));
    return transaction.Commit();
  });
}

absl::Status History::Apply(const job::StateChange& change) {
  return file_.Use([&](Database& database) { return Write(database, change); });
}

absl::Status History::Write(Database& database, const job::StateChange& change) {
  const std::string& id = change.job.id;
  CachedJob fresh;
  const auto found = cached_.find(id);
  const bool is_cached = found != cached_.end();
  // The existence of a job and its verdict must survive power loss. The states in between need not:
  // a job does not outlive its machine.
  const bool durable = !is_cached || job::IsFinal(change.job.state);
  MUSTER_ASSIGN_OR_RETURN(
      Transaction transaction,
      Transaction::Begin(database, durable ? Durability::kSynced : Durability::kLazy));
  MUSTER_RETURN_IF_ERROR(CheckMayReplace(database, change.job));
  MUSTER_RETURN_IF_ERROR(UpsertJob(database, change.job));
  if (is_cached && found->second.file != file_.identity()) {
    MUSTER_RETURN_IF_ERROR(UpsertTasks(database, id, InOrder(found->second)));
  }
  MUSTER_RETURN_IF_ERROR(UpsertTasks(database, id, change.tasks));
  MUSTER_RETURN_IF_ERROR(DeleteTasks(database, id, change.removed));
  MUSTER_ASSIGN_OR_RETURN(
      const int64_t last_sequence,
      AppendEvents(database, id, change.events, is_cached ? found->second.last_sequence : 0));
  if (!is_cached) {
    // Another process may have added the job; its tasks belong to the cached state.
    MUSTER_ASSIGN_OR_RETURN(const std::vector<job::TaskRecord> tasks, SelectTasks(database, id));
    MergeTasks(tasks, fresh);
  }
  MUSTER_RETURN_IF_ERROR(transaction.Commit());

  // The cache changes only after the commit, so that a failed change can be retried.
  CachedJob& kept = is_cached ? found->second : cached_.emplace(id, std::move(fresh)).first->second;
  MergeTasks(change.tasks, kept);
  for (const cluster::TaskId& task : change.removed) kept.tasks.erase(task);
  kept.file = file_.identity();
  kept.job = change.job;
  kept.last_sequence = last_sequence;
  if (job::IsFinal(kept.job.state)) SaveToFolder(kept);
  return absl::OkStatus();
}

// Stores the verdict beside the job's logs, so that it survives the loss of this database. Best
// effort: the database is already committed, so a removed folder or a full disk does not matter.
void History::SaveToFolder(const CachedJob& cached) {
  if (cached.job.directory.empty()) return;
  const std::string path = base::JoinPath(cached.job.directory, kJobFolderFile);
  base::ReplaceFile(path, JobFolderToJson(cached.job, InOrder(cached))).IgnoreError();
}

absl::Status History::Refresh() {
  return file_.Use([&](Database& database) { return RewriteCached(database); });
}

absl::Status History::RewriteCached(Database& database) {
  for (const auto& [id, cached] : cached_) {
    if (cached.file == file_.identity()) continue;
    // An empty change makes Write() store the cached tasks.
    job::StateChange change;
    change.job = cached.job;
    MUSTER_RETURN_IF_ERROR(Write(database, change));
  }
  return absl::OkStatus();
}

void History::MergeTasks(const std::vector<job::TaskRecord>& tasks, CachedJob& cached) {
  for (const job::TaskRecord& task : tasks) {
    if (std::find(cached.roles.begin(), cached.roles.end(), task.id.role) == cached.roles.end()) {
      cached.roles.push_back(task.id.role);
    }
    cached.tasks[task.id] = task;
  }
}

std::vector<job::TaskRecord> History::InOrder(const CachedJob& cached) {
  std::vector<job::TaskRecord> tasks;
  for (const std::string& role : cached.roles) {
    for (auto it = cached.tasks.lower_bound({role, 0});
         it != cached.tasks.end() && it->first.role == role; ++it) {
      tasks.push_back(it->second);
    }
  }
  return tasks;
}

absl::StatusOr<job::JobRecord> History::GetJob(const std::string& id) {
  return Query<job::JobRecord>([&](Database& database) -> absl::StatusOr<job::JobRecord> {
    MUSTER_ASSIGN_OR_RETURN(Statement query, PrepareJobs(database, "WHERE id = ?"));
    query.Bind(id);
    MUSTER_ASSIGN_OR_RETURN(std::vector<job::JobRecord> jobs, ReadJobs(query));
    if (jobs.empty()) return absl::NotFoundError(absl::StrCat("there is no job ", id));
    return std::move(jobs.front());
  });
}

absl::StatusOr<std::vector<job::TaskRecord>> History::Tasks(const std::string& id) {
  return Query<std::vector<job::TaskRecord>>(
      [&](Database& database) { return SelectTasks(database, id); });
}

absl::StatusOr<std::vector<std::pair<std::string, cluster::TaskId>>> History::TaskNames() {
  return Query<std::vector<std::pair<std::string, cluster::TaskId>>>(SelectTaskNames);
}

absl::StatusOr<std::vector<job::Event>> History::Events(const std::string& id,
                                                        int64_t after_sequence, int limit) {
  return Query<std::vector<job::Event>>(
      [&](Database& database) { return SelectEvents(database, id, after_sequence, limit); });
}

absl::StatusOr<std::vector<job::JobRecord>> History::ListJobs(const JobFilter& filter) {
  return Query<std::vector<job::JobRecord>>(
      [&](Database& database) -> absl::StatusOr<std::vector<job::JobRecord>> {
        const Condition condition = ConditionOf(filter);
        MUSTER_ASSIGN_OR_RETURN(
            Statement query,
            PrepareJobs(database, absl::StrCat(condition.sql, kNewestFirst, "LIMIT ",
                                               LimitOf(filter), " OFFSET ", filter.offset)));
        query.BindList(condition.values);
        return ReadJobs(query);
      });
}

absl::StatusOr<std::map<job::JobState, int>> History::CountJobs(const JobFilter& filter) {
  return Query<std::map<job::JobState, int>>(
      [&](Database& database) -> absl::StatusOr<std::map<job::JobState, int>> {
        const Condition condition = ConditionOf(filter);
        MUSTER_ASSIGN_OR_RETURN(Statement query,
                                database.Prepare(absl::StrCat("SELECT state, count(*) FROM jobs ",
                                                              condition.sql, " GROUP BY state")));
        query.BindList(condition.values);
        std::map<job::JobState, int> counts;
        for (;;) {
          MUSTER_ASSIGN_OR_RETURN(const bool row, query.Step());
          if (!row) return counts;
          const auto state = job::ParseJobState(query.Text(0));
          if (state) counts[*state] += static_cast<int>(query.Int(1));
        }
      });
}

absl::StatusOr<std::string> History::Version() {
  return Query<std::string>([&](Database& database) -> absl::StatusOr<std::string> {
    MUSTER_ASSIGN_OR_RETURN(const int64_t version, database.QueryInt("PRAGMA data_version"));
    return absl::StrCat(file_.identity().device, "/", file_.identity().inode, "/", version);
  });
}

absl::StatusOr<job::JobRecord> History::Resolve(absl::string_view reference) {
  return Query<job::JobRecord>([&](Database& database) { return ResolveJob(database, reference); });
}

absl::StatusOr<std::vector<job::JobRecord>> History::FinishedBeyond(int keep) {
  return Query<std::vector<job::JobRecord>>(
      [&](Database& database) -> absl::StatusOr<std::vector<job::JobRecord>> {
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
  cached_.erase(id);
  return absl::OkStatus();
}

}  // namespace muster::history
