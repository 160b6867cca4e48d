// Which job a user means.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "history/database.h"
#include "job/event_sink.h"

namespace muster {

// The first of these that names a job:
//   1. an id;
//   2. a name: the newest job of that name;
//   3. the beginning of a name, when all jobs it could mean have that name: the newest of them;
//   4. the beginning of an id or a name that only one job has.
// FailedPrecondition when several remain, one candidate a line; NotFound, with the nearest name,
// when none does. Letters stand for themselves: there are no wildcards.
absl::StatusOr<JobRecord> ResolveJob(Database& database, absl::string_view reference);

}  // namespace muster
