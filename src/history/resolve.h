// Resolves the name of a job as typed by a user.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "history/database.h"
#include "job/event_sink.h"

namespace muster::history {

// Returns the job that `reference` denotes, by the first rule that matches:
//   1. an id;
//   2. a name: the newest job of that name;
//   3. a prefix of a name, if all jobs that match have that name: the newest of them;
//   4. a prefix of an id or a name that only one job has.
// Returns FailedPrecondition if it is ambiguous, with one candidate per line, or NotFound, with the
// nearest name. There are no wildcards.
absl::StatusOr<job::JobRecord> ResolveJob(Database& database, absl::string_view reference);

}  // namespace muster::history
