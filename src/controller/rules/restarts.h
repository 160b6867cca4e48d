// The restart counts in a job's status: failures, which count against its limits, and lost pods,
// which do not. Each pod is recorded once, by its uid, before it is replaced.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "controller/rules/conditions.h"

namespace muster::controller {

// The record of a job with restart scope `job`. Other records are named after their task.
inline constexpr char kWholeJob[] = "job";

// Records the failure of a pod that will be replaced. Returns false if it is recorded already.
bool CountFailure(Json& status, const std::string& record, const std::string& pod_uid);
// Records the loss of a pod, which counts against no limit. Returns false if it is recorded
// already.
bool RecordLoss(Json& status, const std::string& record, const std::string& pod_uid,
                absl::Time now);

// Return the failures of one record, and of all records.
int FailuresOf(const Json& status, const std::string& record);
int Failures(const Json& status);
// Returns failures plus losses.
int Replacements(const Json& status, const std::string& record);

// Returns when the next pod may be created. The first lost pod is replaced immediately; further
// ones in a row are delayed exponentially, so that a pod that is lost on every node does not cause
// a busy loop. InfinitePast: now.
absl::Time NextReplacement(const Json& status, const std::string& record);

}  // namespace muster::controller
