// What has become of a job at Vertex AI: from its CustomJob to the records that are kept of it.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "job/event_sink.h"
#include "launch/observer.h"

namespace muster::vertex {

// All that is seen of a job at one time.
struct Sight {
  std::optional<nlohmann::json> job;  // nullopt: it is not there any more, or never was
  absl::Time now;
};

// When it ended; nullopt: it has not.
std::optional<absl::Time> EndOf(const nlohmann::json& job, absl::Time now);

// A job that is not in the history, by our id of it where it has one, else by its number.
JobRecord RecordOf(const nlohmann::json& job, absl::Time now);

// Its worker pools as a job of ours, for one that others have started.
JobSpec SpecOf(const nlohmann::json& job);

// What is to be written down; nullopt when nothing has changed. A record that is final stays.
std::optional<StateChange> Compare(const KnownJob& known, const Sight& sight);

}  // namespace muster::vertex
