// Brings the records of jobs up to date with their platforms.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "job/event_sink.h"
#include "jobs/service.h"

namespace muster::jobs {

// Polls the platform for a job that no supervisor on this machine reports on, applies the change to
// the history, and reloads `job`. Does nothing on other platforms. Returns an error if the platform
// does not respond. Concurrent calls for a job are serialized across processes.
absl::Status Observe(Service& service, job::JobRecord& job);
// Synchronizes an unfinished job with its platform. Marks a job whose supervisor died as Failed and
// kills the processes that it left. If the platform does not respond, sets `job` to Unreachable,
// leaves the history unchanged, and returns OK.
absl::Status Refresh(Service& service, job::JobRecord& job);
// Reloads the record from the history, then refreshes it.
absl::Status Reload(Service& service, job::JobRecord& job);

// Returns whether a process on this machine, a supervisor or a submitter, owns the record.
bool IsOwnedHere(const job::JobRecord& job);
// Returns whether another client submitted the job and this history only imported it.
bool IsForeignJob(const job::JobRecord& job);
// Returns whether the submission did not complete and the platform has no job that resulted from
// it. A new job may reuse the id of such a job. Always false on a platform without ChosenIds.
bool IsUnmade(Service& service, const job::JobRecord& job);

// Returns whether the platform reports the job as gone. False if that cannot be determined.
bool IsGone(Service& service, const job::JobRecord& job);
// Returns whether the state of an unfinished job cannot be determined: its platform does not
// respond or is not supported by this version, or its supervisor is on another machine. Such a job
// keeps its name until it is removed (jobs/control/remove.h). Call Refresh() first if the platform
// is supported.
bool IsOutOfReach(Service& service, const job::JobRecord& job);
// Returns a description of such a job, with advice: "mnist-x7k2q, which may be running … and is out
// of reach: …".
std::string DescribeOutOfReach(Service& service, const job::JobRecord& job);
// Returns the location of a job: "in namespace 'ml' of context 'prod'".
std::string WhereIs(Service& service, const job::JobRecord& job);

}  // namespace muster::jobs
