// The tables of history.db and their rows, as documented in docs/formats/history.md.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "history/database.h"
#include "job/event_sink.h"

namespace muster::history {

inline constexpr int kSchemaVersion = 1;

absl::Status CreateSchema(Database& database);
// Returns DataLoss if the tables are missing, FailedPrecondition if a newer muster wrote them.
absl::Status CheckSchema(Database& database, const std::string& path);

absl::Status UpsertJob(Database& database, const job::JobRecord& job);
// Returns false if the job exists already. Replaces a row that RecoverJob made.
absl::StatusOr<bool> InsertJob(Database& database, const job::JobRecord& job);
// Inserts a row built from the job's folder. Later writes of the job replace it.
absl::Status RecoverJob(Database& database, const job::JobRecord& job);
absl::Status UpsertTasks(Database& database, const std::string& job_id,
                         const std::vector<job::TaskRecord>& tasks);
absl::Status DeleteTasks(Database& database, const std::string& job_id,
                         const std::vector<cluster::TaskId>& tasks);
// Appends events, numbered from one above the job's last sequence number, and at least `after` + 1.
// Returns the last sequence number of the job.
absl::StatusOr<int64_t> AppendEvents(Database& database, const std::string& job_id,
                                     const std::vector<job::Event>& events, int64_t after);

// Prepares a SELECT of jobs. `clauses` follows FROM jobs: WHERE …, ORDER BY …. Bind its parameters,
// then call ReadJobs.
absl::StatusOr<Statement> PrepareJobs(Database& database, absl::string_view clauses);
absl::StatusOr<std::vector<job::JobRecord>> ReadJobs(Statement& query);
inline constexpr char kNewestFirst[] = " ORDER BY created_ns DESC, id DESC ";

// Returns the tasks, roles in the job's order and then by index.
absl::StatusOr<std::vector<job::TaskRecord>> SelectTasks(Database& database,
                                                         const std::string& job_id);
// Returns the job and the name of every task, those of the newest job first.
absl::StatusOr<std::vector<std::pair<std::string, cluster::TaskId>>> SelectTaskNames(
    Database& database);
// Returns at most `limit` (0 = all) events after sequence number `after`, in order.
absl::StatusOr<std::vector<job::Event>> SelectEvents(Database& database, const std::string& job_id,
                                                     int64_t after, int limit);

}  // namespace muster::history
