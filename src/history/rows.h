// The tables of history.db and their rows. docs/formats/history.md describes them for readers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "history/database.h"
#include "job/event_sink.h"

namespace muster {

inline constexpr int kSchemaVersion = 1;

absl::Status CreateSchema(Database& database);
// DataLoss when the tables are not there, FailedPrecondition when a newer muster wrote them.
absl::Status CheckSchema(Database& database, const std::string& path);

absl::Status UpsertJob(Database& database, const JobRecord& job);
// False when the job is known already. A row that RecoverJob made does not count.
absl::StatusOr<bool> InsertJob(Database& database, const JobRecord& job);
// A row made from the job's folder: whoever knows more replaces it.
absl::Status RecoverJob(Database& database, const JobRecord& job);
absl::Status UpsertTasks(Database& database, const std::string& job_id,
                         const std::vector<TaskRecord>& tasks);
absl::Status DeleteTasks(Database& database, const std::string& job_id,
                         const std::vector<TaskId>& tasks);
// Numbers the events from the one after the job's last, and not below `after` + 1. Returns the last
// number that the job has.
absl::StatusOr<int64_t> AppendEvents(Database& database, const std::string& job_id,
                                     const std::vector<Event>& events, int64_t after);

// `clauses` is what follows FROM jobs: WHERE …, ORDER BY …. Bind its parameters, then ReadJobs.
absl::StatusOr<Statement> PrepareJobs(Database& database, absl::string_view clauses);
absl::StatusOr<std::vector<JobRecord>> ReadJobs(Statement& query);
inline constexpr char kNewestFirst[] = " ORDER BY created_ns DESC, id DESC ";

// Roles in the order in which the job named them, tasks by index.
absl::StatusOr<std::vector<TaskRecord>> SelectTasks(Database& database, const std::string& job_id);
// limit 0 = all.
absl::StatusOr<std::vector<Event>> SelectEvents(Database& database, const std::string& job_id,
                                                int64_t after, int limit);

}  // namespace muster
