// Resolves references to jobs and refreshes their records.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/context.h"
#include "cli/target_options.h"
#include "job/event_sink.h"

namespace muster::cli {

// Returns the refreshed job that `reference` denotes (see history/resolve.h). If `target` names a
// platform, also finds jobs that other clients submitted there, and adds them to the history.
// Returns InvalidArgument if `target` does not fit the job's platform.
absl::StatusOr<JobRecord> FindJob(Context& context, const std::string& reference,
                                  const TargetOptions& target = {});
// Returns the job with exactly this name or id, not refreshed. For commands that also take a path:
// a bare name denotes the job if there is one, ./NAME the path. Returns nullopt if the history
// cannot be read.
std::optional<JobRecord> JobNamed(Context& context, const std::string& reference);
// Returns whether `reference` denotes a file or "-" (standard input) rather than a job.
bool IsFile(Context& context, const std::string& reference);
// Returns the newest unfinished job, else the newest job, or NotFound if there are none. The
// default of `muster show`.
absl::StatusOr<JobRecord> LatestJob(Context& context);

// Returns whether another client submitted the job and this history only imported it.
bool IsAnothers(const JobRecord& job);
// Returns whether the submission to Vertex AI did not complete and no custom job is known to result
// from it. A new job may reuse the id of such a job.
bool IsUnmade(const JobRecord& job);

// Returns the refreshed, unfinished job of that name, or nullopt. Ignores jobs of other clients.
// There is at most one.
absl::StatusOr<std::optional<JobRecord>> RunningJob(Context& context, const std::string& name);

// Polls the platform for a job that no supervisor on this machine reports on, applies the change to
// the history, and reloads `job`. Does nothing on other platforms. Returns an error if the platform
// does not respond. Concurrent calls for a job are serialized across processes.
absl::Status Observe(Context& context, JobRecord& job);
// Synchronizes an unfinished job with its platform. Marks a job whose supervisor died as Failed and
// kills the processes that it left. If the platform does not respond, sets `job` to Unreachable,
// leaves the history unchanged, and returns OK.
absl::Status Refresh(Context& context, JobRecord& job);

// Returns whether the state of an unfinished job cannot be determined: its platform does not
// respond or is not supported by this version, or its supervisor is on another machine. Such a job
// keeps its name until `muster jobs forget`. Call Refresh() first if the platform is supported.
bool IsOutOfReach(Context& context, const JobRecord& job);
// Returns a description of such a job, with advice: "mnist-x7k2q, which may be running … and is out
// of reach: …".
std::string OutOfReach(Context& context, const JobRecord& job);
// Returns the location of a job: "in namespace 'ml' of context 'prod'".
std::string WhereIs(Context& context, const JobRecord& job);

// Returns the tasks that match a selector: a task ("worker:1") or a role ("worker"). No selectors
// select all tasks. Returns InvalidArgument, listing the tasks, if a selector matches none.
absl::StatusOr<std::vector<TaskId>> SelectTasks(const std::vector<TaskRecord>& tasks,
                                                const std::vector<std::string>& selectors);

}  // namespace muster::cli
