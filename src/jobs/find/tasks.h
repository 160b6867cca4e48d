// Finds tasks by what a user calls them: their name, role, id, or host.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "job/event_sink.h"
#include "jobs/find/lookup.h"
#include "jobs/service.h"

namespace muster::jobs {

// Returns the id of a task: eight hexadecimal digits, computed from the job's id and the task's
// name. It is the same for all attempts and on every machine.
std::string ShortTaskId(absl::string_view job_id, const cluster::TaskId& task);

// Returns the tasks of the job that match the selectors. No selectors select all tasks. A selector
// is, by the first rule that matches:
//   1. a task ("worker:1");
//   2. a role ("worker"): all of its tasks;
//   3. an id;
//   4. a machine, or the host name of tasks' addresses, also without its domain: the tasks there;
//   5. a prefix of an id.
// Returns InvalidArgument, listing the tasks, if a selector matches none, or FailedPrecondition,
// listing the candidates, if a prefix matches several.
absl::StatusOr<std::vector<cluster::TaskId>> SelectTasks(const std::string& job_id,
                                                         const std::vector<job::TaskRecord>& tasks,
                                                         const std::vector<std::string>& selectors);

// A job, and some of its tasks.
struct TaskSelection {
  job::JobRecord job;
  std::vector<job::TaskRecord> records;  // all tasks of the job
  std::vector<cluster::TaskId> tasks;    // the selected ones
  bool is_whole_job = false;             // no selector was given
};

// Returns the tasks that `words` denote: a job followed by selectors, or selectors alone. A first
// word that is both is, by the first rule that matches: the name or id of a job; the id of a task;
// a prefix that FindJob() accepts; a selector in the job of LatestJob(); a prefix of the id of a
// task of any job. REQUIRES: `words` is not empty. Returns NotFound if the first word is none of
// these; errors otherwise as of FindJob() and SelectTasks().
absl::StatusOr<TaskSelection> FindTasks(Service& service, const std::vector<std::string>& words,
                                        const Selection& selection = {});

}  // namespace muster::jobs
