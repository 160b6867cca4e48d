#include "history/resolve.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/suggest.h"
#include "base/text/terminal_text.h"
#include "base/text/units.h"
#include "history/rows.h"

namespace muster::history {
namespace {

constexpr size_t kMaxCandidates = 10;

absl::StatusOr<std::vector<job::JobRecord>> Find(Database& database, absl::string_view condition,
                                                 absl::string_view reference) {
  MUSTER_ASSIGN_OR_RETURN(Statement query,
                          PrepareJobs(database, absl::StrCat("WHERE ", condition, kNewestFirst)));
  query.Bind(reference);
  return ReadJobs(query);
}

absl::Status Ambiguous(absl::string_view reference, const std::vector<job::JobRecord>& jobs) {
  std::string message =
      absl::StrCat("'", reference, "' is ambiguous; it matches ", jobs.size(), " jobs:");
  for (size_t i = 0; i < std::min(jobs.size(), kMaxCandidates); ++i) {
    absl::StrAppend(&message, "\n  ", jobs[i].id, "  ", job::ToString(jobs[i].state), "  ",
                    base::FormatLocalTime(jobs[i].created));
  }
  if (jobs.size() > kMaxCandidates) {
    absl::StrAppend(&message, "\n  and ", jobs.size() - kMaxCandidates, " older");
  }
  return absl::FailedPreconditionError(message);
}

absl::Status Unknown(Database& database, absl::string_view reference) {
  MUSTER_ASSIGN_OR_RETURN(Statement query, database.Prepare("SELECT DISTINCT name FROM jobs"));
  std::vector<std::string> names;
  for (;;) {
    MUSTER_ASSIGN_OR_RETURN(const bool row, query.Step());
    if (!row) break;
    names.push_back(query.Text(0));
  }
  return absl::NotFoundError(absl::StrCat("there is no job '", base::Printable(reference), "'",
                                          base::DidYouMean(reference, names)));
}

}  // namespace

absl::StatusOr<job::JobRecord> ResolveJob(Database& database, absl::string_view reference) {
  if (reference.empty()) return absl::InvalidArgumentError("a job's name or id must not be empty");
  // substr() instead of LIKE and GLOB, in which %, _ and * are special.
  constexpr absl::string_view kConditions[] = {
      "id = ?1", "name = ?1", "substr(id, 1, length(?1)) = ?1 OR substr(name, 1, length(?1)) = ?1"};
  std::vector<job::JobRecord> jobs;
  for (absl::string_view condition : kConditions) {
    MUSTER_ASSIGN_OR_RETURN(jobs, Find(database, condition, reference));
    if (!jobs.empty()) break;
  }
  if (jobs.empty()) return Unknown(database, reference);
  const std::string& name = jobs.front().name;
  const bool one_name = std::all_of(jobs.begin(), jobs.end(),
                                    [&](const job::JobRecord& job) { return job.name == name; });
  if (jobs.size() == 1 || (one_name && absl::StartsWith(name, reference))) {
    return std::move(jobs.front());
  }
  return Ambiguous(reference, jobs);
}

}  // namespace muster::history
