#include "history/rows.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"

namespace muster::history {
namespace {

// "MSTR": distinguishes this file from other SQLite databases.
constexpr int64_t kApplicationId = 0x4d535452;

constexpr char kSchema[] = R"sql(
CREATE TABLE jobs (
  id                     TEXT NOT NULL PRIMARY KEY,
  name                   TEXT NOT NULL,
  platform               TEXT NOT NULL,
  state                  TEXT NOT NULL,
  final                  INTEGER NOT NULL,
  reason                 TEXT NOT NULL,
  created_ns             INTEGER NOT NULL,
  started_ns             INTEGER,
  finished_ns            INTEGER,
  directory              TEXT NOT NULL,
  model_dir              TEXT NOT NULL,
  resumed_from           TEXT NOT NULL,
  tasks                  INTEGER NOT NULL,
  supervisor_pid         INTEGER,
  supervisor_start_ticks INTEGER,
  supervisor_place     TEXT NOT NULL,
  failure                TEXT NOT NULL,
  recovered              INTEGER NOT NULL
);
CREATE INDEX jobs_by_created ON jobs (created_ns, id);
CREATE INDEX jobs_by_name ON jobs (name, created_ns, id);
CREATE INDEX jobs_active ON jobs (created_ns, id) WHERE final = 0;
CREATE TABLE tasks (
  job_id      TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  role        TEXT NOT NULL,
  task_index  INTEGER NOT NULL,
  state       TEXT NOT NULL,
  attempt     INTEGER NOT NULL,
  restarts    INTEGER NOT NULL,
  host        TEXT NOT NULL,
  address     TEXT NOT NULL,
  pid         INTEGER NOT NULL,
  command     TEXT NOT NULL,
  started_ns  INTEGER,
  finished_ns INTEGER,
  exit_code   INTEGER,
  reason      TEXT NOT NULL,
  PRIMARY KEY (job_id, role, task_index)
);
CREATE TABLE events (
  job_id   TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  sequence INTEGER NOT NULL,
  time_ns  INTEGER NOT NULL,
  kind     TEXT NOT NULL,
  subject  TEXT NOT NULL,
  message  TEXT NOT NULL,
  PRIMARY KEY (job_id, sequence)
) WITHOUT ROWID;
)sql";

constexpr char kJobColumns[] =
    "id, name, platform, state, final, reason, created_ns, started_ns, finished_ns, directory, "
    "model_dir, resumed_from, tasks, supervisor_pid, supervisor_start_ticks, supervisor_place, "
    "failure, recovered";
constexpr char kJobValues[] = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
constexpr char kReplaceJob[] =
    " ON CONFLICT (id) DO UPDATE SET name = excluded.name, platform = excluded.platform, "
    "state = excluded.state, final = excluded.final, reason = excluded.reason, "
    "created_ns = excluded.created_ns, started_ns = excluded.started_ns, "
    "finished_ns = excluded.finished_ns, directory = excluded.directory, "
    "model_dir = excluded.model_dir, resumed_from = excluded.resumed_from, "
    "tasks = excluded.tasks, supervisor_pid = excluded.supervisor_pid, "
    "supervisor_start_ticks = excluded.supervisor_start_ticks, "
    "supervisor_place = excluded.supervisor_place, failure = excluded.failure, "
    "recovered = excluded.recovered";

constexpr char kTaskColumns[] =
    "role, task_index, state, attempt, restarts, host, address, pid, command, started_ns, "
    "finished_ns, exit_code, reason";

std::optional<int64_t> Nanos(const std::optional<absl::Time>& time) {
  if (!time) return std::nullopt;
  return absl::ToUnixNanos(*time);
}

std::optional<absl::Time> OptionalTime(const Statement& row, int column) {
  const std::optional<int64_t> nanos = row.OptionalInt(column);
  if (!nanos) return std::nullopt;
  return absl::FromUnixNanos(*nanos);
}

absl::Status WriteJob(Database& database, const job::JobRecord& job, bool recovered,
                      absl::string_view on_conflict) {
  MUSTER_ASSIGN_OR_RETURN(Statement insert,
                          database.Prepare(absl::StrCat("INSERT INTO jobs (", kJobColumns,
                                                        ") VALUES ", kJobValues, on_conflict)));
  const process::ProcessIdentity supervisor = job.supervisor.value_or(process::ProcessIdentity());
  std::optional<int64_t> pid, start_ticks;
  if (job.supervisor) {
    pid = supervisor.pid;
    start_ticks = static_cast<int64_t>(supervisor.start_ticks);
  }
  insert.Bind(job.id, job.name, job.platform, job::ToString(job.state), job::IsFinal(job.state),
              job.reason, absl::ToUnixNanos(job.created), Nanos(job.started), Nanos(job.finished),
              job.directory, job.model_dir, job.resumed_from, job.tasks, pid, start_ticks,
              supervisor.host, job.failure, recovered);
  return insert.Run();
}

// Column numbers are positions in kJobColumns.
job::JobRecord ReadJob(const Statement& row) {
  job::JobRecord job;
  job.id = row.Text(0);
  job.name = row.Text(1);
  job.platform = row.Text(2);
  job.reason = row.Text(5);
  // A state written by a newer muster must not prevent the listing of other jobs.
  if (const std::optional<job::JobState> state = job::ParseJobState(row.Text(3))) {
    job.state = *state;
  } else {
    job.state = job::JobState::kUnreachable;
    job.reason =
        absl::StrCat("state '", row.Text(3), "' is not supported by this version of muster");
  }
  job.created = absl::FromUnixNanos(row.Int(6));
  job.started = OptionalTime(row, 7);
  job.finished = OptionalTime(row, 8);
  job.directory = row.Text(9);
  job.model_dir = row.Text(10);
  job.resumed_from = row.Text(11);
  job.tasks = static_cast<int>(row.Int(12));
  if (const std::optional<int64_t> pid = row.OptionalInt(13)) {
    job.supervisor = process::ProcessIdentity{static_cast<int>(*pid),
                                              static_cast<uint64_t>(row.Int(14)), row.Text(15)};
  }
  job.failure = row.Text(16);
  return job;
}

// Column numbers are positions in kTaskColumns.
job::TaskRecord ReadTask(const Statement& row) {
  job::TaskRecord task;
  task.id = {row.Text(0), static_cast<int>(row.Int(1))};
  task.state = job::ParseTaskState(row.Text(2)).value_or(job::TaskState::kLost);
  task.attempt = static_cast<int>(row.Int(3));
  task.restarts = static_cast<int>(row.Int(4));
  task.host = row.Text(5);
  task.address = row.Text(6);
  task.pid = static_cast<int>(row.Int(7));
  task.command = row.Text(8);
  task.started = OptionalTime(row, 9);
  task.finished = OptionalTime(row, 10);
  if (const std::optional<int64_t> code = row.OptionalInt(11)) {
    task.exit_code = static_cast<int>(*code);
  }
  task.reason = row.Text(12);
  return task;
}

job::Event ReadEvent(const Statement& row) {
  return {row.Int(0), absl::FromUnixNanos(row.Int(1)), row.Text(2), row.Text(3), row.Text(4)};
}

template <typename Record>
absl::StatusOr<std::vector<Record>> ReadAllRows(Statement& query,
                                                Record (*read)(const Statement&)) {
  std::vector<Record> records;
  for (;;) {
    MUSTER_ASSIGN_OR_RETURN(const bool row, query.Step());
    if (!row) return records;
    records.push_back(read(query));
  }
}

}  // namespace

absl::Status CreateSchema(Database& database) {
  return database.Execute(absl::StrCat(kSchema, "PRAGMA application_id = ", kApplicationId,
                                       "; PRAGMA user_version = ", kSchemaVersion, ";"));
}

absl::Status CheckSchema(Database& database, const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const int64_t application, database.QueryInt("PRAGMA application_id"));
  MUSTER_ASSIGN_OR_RETURN(const int64_t version, database.QueryInt("PRAGMA user_version"));
  MUSTER_ASSIGN_OR_RETURN(
      const int64_t tables,
      database.QueryInt("SELECT count(*) FROM sqlite_schema WHERE type = 'table' "
                        "AND name IN ('jobs', 'tasks', 'events')"));
  if (application != kApplicationId || version < 1) {
    return absl::DataLossError(absl::StrCat(path, " is not a Muster history database"));
  }
  if (version > kSchemaVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " was written by a newer muster (format ", version,
                     "; this version supports up to ", kSchemaVersion, "); update muster"));
  }
  if (tables != 3) return absl::DataLossError(absl::StrCat(path, " lacks its tables"));
  return absl::OkStatus();
}

absl::Status UpsertJob(Database& database, const job::JobRecord& job) {
  return WriteJob(database, job, /*recovered=*/false, kReplaceJob);
}

absl::StatusOr<bool> InsertJob(Database& database, const job::JobRecord& job) {
  MUSTER_RETURN_IF_ERROR(WriteJob(database, job, /*recovered=*/false,
                                  absl::StrCat(kReplaceJob, " WHERE jobs.recovered = 1")));
  return database.Changes() > 0;
}

absl::Status RecoverJob(Database& database, const job::JobRecord& job) {
  return WriteJob(database, job, /*recovered=*/true, " ON CONFLICT (id) DO NOTHING");
}

absl::Status UpsertTasks(Database& database, const std::string& job_id,
                         const std::vector<job::TaskRecord>& tasks) {
  if (tasks.empty()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(
      Statement upsert,
      database.Prepare(absl::StrCat(
          "INSERT INTO tasks (job_id, ", kTaskColumns,
          ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
          "ON CONFLICT (job_id, role, task_index) DO UPDATE SET state = excluded.state, "
          "attempt = excluded.attempt, restarts = excluded.restarts, host = excluded.host, "
          "address = excluded.address, pid = excluded.pid, command = excluded.command, "
          "started_ns = excluded.started_ns, finished_ns = excluded.finished_ns, "
          "exit_code = excluded.exit_code, reason = excluded.reason")));
  for (const job::TaskRecord& task : tasks) {
    std::optional<int64_t> exit_code = task.exit_code;
    upsert.Bind(job_id, task.id.role, task.id.index, job::ToString(task.state), task.attempt,
                task.restarts, task.host, task.address, task.pid, task.command, Nanos(task.started),
                Nanos(task.finished), exit_code, task.reason);
    MUSTER_RETURN_IF_ERROR(upsert.Run());
  }
  return absl::OkStatus();
}

absl::Status DeleteTasks(Database& database, const std::string& job_id,
                         const std::vector<cluster::TaskId>& tasks) {
  if (tasks.empty()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(
      Statement remove,
      database.Prepare("DELETE FROM tasks WHERE job_id = ? AND role = ? AND task_index = ?"));
  for (const cluster::TaskId& task : tasks) {
    remove.Bind(job_id, task.role, task.index);
    MUSTER_RETURN_IF_ERROR(remove.Run());
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> AppendEvents(Database& database, const std::string& job_id,
                                     const std::vector<job::Event>& events, int64_t after) {
  MUSTER_ASSIGN_OR_RETURN(
      Statement last,
      database.Prepare("SELECT coalesce(max(sequence), 0) FROM events WHERE job_id = ?"));
  last.Bind(job_id);
  MUSTER_RETURN_IF_ERROR(last.Step().status());
  int64_t sequence = std::max(after, last.Int(0));
  MUSTER_ASSIGN_OR_RETURN(
      Statement insert,
      database.Prepare("INSERT INTO events (job_id, sequence, time_ns, kind, subject, message) "
                       "VALUES (?, ?, ?, ?, ?, ?)"));
  for (const job::Event& event : events) {
    insert.Bind(job_id, ++sequence, absl::ToUnixNanos(event.time), event.kind, event.subject,
                event.message);
    MUSTER_RETURN_IF_ERROR(insert.Run());
  }
  return sequence;
}

absl::StatusOr<Statement> PrepareJobs(Database& database, absl::string_view clauses) {
  return database.Prepare(absl::StrCat("SELECT ", kJobColumns, " FROM jobs ", clauses));
}

absl::StatusOr<std::vector<job::JobRecord>> ReadJobs(Statement& query) {
  return ReadAllRows(query, ReadJob);
}

absl::StatusOr<std::vector<job::TaskRecord>> SelectTasks(Database& database,
                                                         const std::string& job_id) {
  // Rows are inserted in the job's order, so the first row of a role determines its position.
  MUSTER_ASSIGN_OR_RETURN(
      Statement query,
      database.Prepare(absl::StrCat("SELECT ", kTaskColumns, " FROM tasks WHERE job_id = ? ",
                                    "ORDER BY min(rowid) OVER (PARTITION BY role), task_index")));
  query.Bind(job_id);
  return ReadAllRows(query, ReadTask);
}

absl::StatusOr<std::vector<std::pair<std::string, cluster::TaskId>>> SelectTaskNames(
    Database& database) {
  MUSTER_ASSIGN_OR_RETURN(
      Statement query,
      database.Prepare(absl::StrCat(
          "SELECT job_id, role, task_index FROM tasks JOIN jobs ON ", "jobs.id = tasks.job_id",
          kNewestFirst, ", min(tasks.rowid) OVER (PARTITION BY job_id, role), ", "task_index")));
  using Name = std::pair<std::string, cluster::TaskId>;
  return ReadAllRows<Name>(query, [](const Statement& row) {
    return Name{row.Text(0), {row.Text(1), static_cast<int>(row.Int(2))}};
  });
}

absl::StatusOr<std::vector<job::Event>> SelectEvents(Database& database, const std::string& job_id,
                                                     int64_t after, int limit) {
  MUSTER_ASSIGN_OR_RETURN(
      Statement query,
      database.Prepare("SELECT sequence, time_ns, kind, subject, message FROM events "
                       "WHERE job_id = ? AND sequence > ? ORDER BY sequence LIMIT ?"));
  query.Bind(job_id, after, limit > 0 ? limit : -1);
  return ReadAllRows(query, ReadEvent);
}

}  // namespace muster::history
