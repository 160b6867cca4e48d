// The rule that decides when a job has succeeded. It holds on every platform. Pure.
#pragma once

#include <optional>

#include "absl/functional/function_ref.h"
#include "cluster/task_id.h"
#include "job/job_spec.h"

namespace muster::job {

// Returns the task whose success is that of the job, or nullopt if all tasks that train have to
// succeed. As in Kubeflow, the chief or master of a TFJob decides even with `AllWorkers`.
std::optional<cluster::TaskId> DecidingTask(const JobSpec& spec);

// Returns true if the job has succeeded. `succeeded` returns whether a task has. In a job of
// servers alone, all of them have to succeed.
bool HasSucceeded(const JobSpec& spec, absl::FunctionRef<bool(const cluster::TaskId&)> succeeded);

}  // namespace muster::job
