// What has become of a job in a cluster: from its TFJob and pods to the records that are kept of
// it. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "job/event_sink.h"
#include "launch/kubernetes/pod_status.h"
#include "launch/observer.h"

namespace muster::kubernetes {

// All that is seen of a job at one time.
struct Sight {
  std::optional<Json> job;  // nullopt: it is not there any more
  std::vector<Json> pods;
  absl::Time now;
};

using Known = KnownJob;

// The job's verdict, if it has one.
std::optional<JobState> VerdictOf(const Json& job);

// How long tasks of a job that has succeeded may go on before the operator ends them. Those of a
// manifest are not waited for.
absl::Duration FinishGrace(const JobSpec& spec);
// Whether the pod's container is at work.
bool IsAtWork(const Json& pod);

// A job that is not in the history, by its own name.
JobRecord RecordOf(const Json& job, absl::Time now);

// What is to be written down; nullopt when nothing has changed. A record that is final stays.
std::optional<StateChange> Compare(const Known& known, const Sight& sight);

}  // namespace muster::kubernetes
