// Derives the records of a job from its CustomJob. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "job/event_sink.h"
#include "platform/observer.h"

namespace muster::vertex {

// One observation of a job.
struct Observation {
  std::optional<nlohmann::json> job;  // nullopt: the job does not exist
  absl::Time now;
};

// Returns the end of the job, or nullopt if it has not ended.
std::optional<absl::Time> EndOf(const nlohmann::json& job, absl::Time now);

// Returns the record of a job that is not in the history. Its id is Muster's if it has one, else
// its number.
job::JobRecord RecordOf(const nlohmann::json& job, absl::Time now);

// Returns the worker pools of a job that others submitted, as a JobSpec.
job::JobSpec SpecOf(const nlohmann::json& job);

// Returns the changes to the records, or nullopt if there are none. A final record never changes.
std::optional<job::StateChange> Compare(const platform::KnownJob& known,
                                        const Observation& observation);

}  // namespace muster::vertex
