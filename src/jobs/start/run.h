// Starts jobs, and changes running ones. A client first plans, shows the plan if it wants to, and
// then carries it out:
//
//   PlanRun ── no job of that name runs ──> StartPlanned
//           └─ it runs ──────────────────> ApplyPlanned
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "job/event_sink.h"
#include "job/submission.h"
#include "jobs/service.h"
#include "jobs/start/version.h"
#include "supervise/lifecycle.h"

namespace muster::jobs {

struct RunRequest {
  job::Submission submission;  // from LoadSubmission(), with its target
  std::string job_id;          // on a platform with ChosenIds; "" = Muster chooses one
  bool fresh = false;          // train from step 0, not from the last checkpoint
  bool restart = false;        // restart all tasks of a running job, changed or not
};

// A running job and its submission.
struct RunningJobInfo {
  job::JobRecord job;
  job::Submission submission;
};

struct RunPlan {
  job::Submission submission;             // prepared by its platform
  std::optional<RunningJobInfo> running;  // the job that would be changed; nullopt = a new job
  supervise::UpdatePlan update;           // the changes to `running`
  VersionChange edited;                   // the files edited since `running` was started
  absl::Status runnable;                  // why a new job would certainly fail, or OK
};

// Plans the request. Starts and changes nothing. Notifies of features that the
// platform does not support. Returns InvalidArgument if the job cannot run there, or
// FailedPrecondition if the job of that name runs elsewhere, is out of reach, or cannot be changed.
absl::StatusOr<RunPlan> PlanRun(Service& service, const RunRequest& request);

// Starts the new job of a plan. Returns nullopt if another process took the name or the id in the
// meantime: plan again. REQUIRES: !plan.running, plan.runnable is OK.
absl::StatusOr<std::optional<job::JobRecord>> StartPlanned(Service& service, const RunPlan& plan);

// The job files of a running job and of its change.
struct SourceTexts {
  std::string current;
  std::string next;
};
// Returns the texts to compare. If one of them was generated, from several files or with overrides,
// both have its layout, so that they differ only in what they say. REQUIRES: plan.running.
SourceTexts SourcesOf(const RunPlan& plan);

// Changes the running job of a plan. REQUIRES: plan.running.
absl::Status ApplyPlanned(Service& service, const RunPlan& plan);

}  // namespace muster::jobs
