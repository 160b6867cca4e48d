// Finding jobs, as they are now.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/context.h"
#include "cli/place_options.h"
#include "job/event_sink.h"

namespace muster::cli {

// The job that `reference` means. Of a platform that the user names it may also be one that others
// have started there: it is kept in the history from then on.
absl::StatusOr<JobRecord> FindJob(Context& context, const std::string& reference,
                                  const PlaceOptions& place = {});
// The job that has exactly this name or id, for commands that also take a path: a bare name is
// the job, if there is one, and ./NAME the path. None when the history cannot be read.
std::optional<JobRecord> JobNamed(Context& context, const std::string& reference);
// Whether a reference means a file, or "-", standard input, and not a job.
bool IsFile(Context& context, const std::string& reference);
// The newest job that is not finished, else the newest of all: what `muster show` alone means.
absl::StatusOr<JobRecord> LatestJob(Context& context);

// Whether another has started it, and it was merely looked at from here.
bool IsAnothers(const JobRecord& job);
// Whether its submission to Vertex AI never came to an end, and no job is known to have come of it:
// the next of that id takes its place.
bool IsUnmade(const JobRecord& job);

// The job of that name that is not finished and not another's; there is at most one.
absl::StatusOr<std::optional<JobRecord>> RunningJob(Context& context, const std::string& name);

// Writes down what has become of a job of which nobody else reports, and reads its record anew.
absl::Status Observe(Context& context, JobRecord& job);
// Brings a record up to date with its platform: a job whose supervisor died is marked Failed, and
// what it left running is ended. Of a platform that does not answer nothing is concluded: then the
// record, not the history, says Unreachable.
absl::Status Refresh(Context& context, JobRecord& job);

// Whether it cannot be told what became of an unfinished job: its platform does not answer, or it
// is watched over from another machine. Such a job keeps its name until it is forgotten.
bool IsOutOfReach(Context& context, const JobRecord& job);
// "mnist-x7k2q, which is out of reach: …; if it is gone for good, `muster jobs forget …` …".
std::string OutOfReach(Context& context, const JobRecord& job);
// "in namespace 'ml' of context 'prod'", where a job is or was.
std::string WhereIs(Context& context, const JobRecord& job);

// "worker:1", "worker" (all of them); InvalidArgument names the tasks there are.
absl::StatusOr<std::vector<TaskId>> SelectTasks(const std::vector<TaskRecord>& tasks,
                                                const std::vector<std::string>& selectors);

}  // namespace muster::cli
