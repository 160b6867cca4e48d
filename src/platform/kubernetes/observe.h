// Derives the records of a job from its TFJob and pods. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "job/event_sink.h"
#include "manifest/pod_status.h"
#include "platform/kubernetes/target.h"
#include "platform/observer.h"

namespace muster::kubernetes {

// One observation of a job.
struct Observation {
  std::optional<Json> job;  // nullopt: the TFJob does not exist
  std::vector<Json> pods;
  absl::Time now;
};

// Returns Succeeded or Failed if the job's conditions contain it, else nullopt.
std::optional<job::JobState> VerdictOf(const Json& job);

// Returns how long the tasks of a succeeded job may keep running before the operator ends them.
// Zero for a manifest.
absl::Duration FinishGrace(const job::JobSpec& spec);
// Returns true if the container of a task's pod is running.
bool IsAtWork(const Json& pod);

// Returns the record of a job that is not in the history. Its id is the name of the TFJob.
job::JobRecord RecordOf(const Json& job, absl::Time now);

// Returns the changes to the records, or nullopt if there are none. A final record never changes.
std::optional<job::StateChange> Compare(const platform::KnownJob& known,
                                        const Observation& observation);

}  // namespace muster::kubernetes
