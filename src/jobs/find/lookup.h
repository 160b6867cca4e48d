// Finds jobs by name, id or prefix. For tasks, see jobs/find/tasks.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "job/event_sink.h"
#include "job/target.h"
#include "jobs/service.h"

namespace muster::jobs {

// Where a user looks for jobs.
struct Selection {
  std::string platform;  // "" = in the history
  job::Target target;    // of `platform`, else of `option_platform`
  // An option of a platform that the user gave without naming the platform, and that platform. The
  // job must be there.
  std::string option = "";
  std::string option_platform = "";
};

// Returns the refreshed job that `reference` denotes (see history/resolve.h). If `selection` names
// a platform with a catalog, also finds jobs that other clients submitted there, and adds them to
// the history. Returns InvalidArgument if an option does not fit the job's platform.
absl::StatusOr<job::JobRecord> FindJob(Service& service, const std::string& reference,
                                       const Selection& selection = {});
// Returns the job with exactly this name or id, not refreshed. For clients that also take a path: a
// bare name denotes the job if there is one, ./NAME the path. Returns nullopt if the history cannot
// be read.
std::optional<job::JobRecord> JobNamed(Service& service, const std::string& reference);
// Returns the newest unfinished job, else the newest job, or NotFound if there are none.
absl::StatusOr<job::JobRecord> LatestJob(Service& service);
// Returns the refreshed, unfinished job of that name, or nullopt. Ignores jobs of other clients.
// There is at most one.
absl::StatusOr<std::optional<job::JobRecord>> RunningJob(Service& service, const std::string& name);

// Which jobs to list.
struct JobQuery {
  bool only_active = false;                 // unfinished ones
  std::vector<job::JobState> states;        // empty = any
  std::string name;                         // as in a shell: "mnist", "mnist*"; "" = any
  absl::Time since = absl::InfinitePast();  // created then or later
  int limit = 0;                            // the newest; 0 = all
};
// Returns the refreshed jobs in the history that match, newest first. If the selected platform has
// a catalog, they are those of the platform.
absl::StatusOr<std::vector<job::JobRecord>> ListJobs(Service& service, const Selection& selection,
                                                     const JobQuery& query = {});
// Returns the refreshed, unfinished jobs that this user submitted from here, on `platform`; "" = on
// any.
absl::StatusOr<std::vector<job::JobRecord>> ActiveJobs(Service& service,
                                                       const std::string& platform);
// Returns the states that a user names, in any case and separated by commas. Returns
// InvalidArgument with the names that there are.
absl::StatusOr<std::vector<job::JobState>> ParseStates(const std::vector<std::string>& names);

}  // namespace muster::jobs
