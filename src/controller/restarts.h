// The restarts of a job's tasks, as its status records them: how many count against its limits, and
// how many pods were lost. Each pod is recorded once, by its uid, before it is replaced.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "controller/conditions.h"

namespace muster::controller {

// The record of a job that restarts as one; else a record is called after its task.
inline constexpr char kWholeJob[] = "job";

// Records the failure of a pod that is to be replaced. False when that was done before.
bool CountFailure(Json& status, const std::string& record, const std::string& pod_uid);
// The same of a pod that was lost, which counts against no limit.
bool RecordLoss(Json& status, const std::string& record, const std::string& pod_uid,
                absl::Time now);

// Failures that count, of one record and of all.
int FailuresOf(const Json& status, const std::string& record);
int Failures(const Json& status);
// Both failures and losses.
int Replacements(const Json& status, const std::string& record);

// When the next pod may be made: the first that is lost is replaced at once, others in a row with
// growing delay, so that a pod that no node keeps does not spin. InfinitePast: now.
absl::Time NextReplacement(const Json& status, const std::string& record);

}  // namespace muster::controller
