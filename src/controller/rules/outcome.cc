#include "controller/rules/outcome.h"

#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "controller/rules/restarts.h"
#include "job/format/tfjob_format.h"
#include "job/restart_policy.h"
#include "job/success_policy.h"

namespace muster::controller {
namespace {

bool Succeeded(ReconcileContext& context) {
  return job::HasSucceeded(context.job().spec(), [&context](const cluster::TaskId& task) {
    return context.HasSucceeded(task);
  });
}

bool IsDynamicWorker(const TfJob& job, const job::RoleSpec& role) {
  return job.spec().dynamic_workers && role.name == "worker";
}

// Returns whether the failure of a pod's program fails the job.
bool IsFinal(const TfJob& job, const job::RoleSpec& role, const Child& pod) {
  if (IsDynamicWorker(job, role)) return false;
  // A retry would run out of memory as well. The rule of v1 considers the exit code only.
  if (job.is_v1alpha1() && pod.reason() == "OOMKilled") return true;
  return !job::RetriesFailure(role.restart, pod.exit_code());
}

enum class PodOutcome {
  kNone,     // has not failed, or is not replaced
  kLost,     // is replaced; counts against no limit
  kRetried,  // is replaced; counts as a failure
  kFinal,    // fails the job
};

// Classifies a pod. A pod that is being deleted has no outcome, whatever its exit code. The
// exception is a job with restart scope `job`, which restarts when the cluster disrupts a pod.
PodOutcome OutcomeOf(ReconcileContext& context, const job::RoleSpec& role,
                     const cluster::TaskId& task, const Child& pod) {
  if (context.HasSucceeded(task)) return PodOutcome::kNone;
  if (pod.deleting() && context.RestartRecord(task) == kWholeJob && !pod.disruption().empty()) {
    return PodOutcome::kLost;
  }
  if (!pod.failed()) return PodOutcome::kNone;
  if (pod.why_lost()) return PodOutcome::kLost;
  if (IsFinal(context.job(), role, pod)) return PodOutcome::kFinal;
  const bool stays =
      IsDynamicWorker(context.job(), role) && role.restart == job::RestartPolicy::kNever;
  return stays ? PodOutcome::kNone : PodOutcome::kRetried;
}

// Returns whether the whole job restarts because a pod was lost. Failures of other pods are then a
// consequence, whatever their exit codes.
bool RestartsForALoss(ReconcileContext& context) {
  if (context.job().spec().policies.restart_scope != job::RestartScope::kJob) return false;
  return std::any_of(context.pods().begin(), context.pods().end(), [&](const auto& slot) {
    const job::RoleSpec* role = context.RoleOf(slot.first);
    return role != nullptr &&
           OutcomeOf(context, *role, slot.first, slot.second) == PodOutcome::kLost;
  });
}

// Returns whether that many restarts, including the one that is due, fail the job. As in Kubeflow,
// the job fails when it reaches the limit, not when it exceeds it.
bool IsPastBackoff(int restarts, int limit) { return restarts > 0 && restarts >= limit; }

std::string WhyFailed(const cluster::TaskId& task, const Child& pod) {
  const std::string reason = pod.reason();
  const auto code = pod.exit_code();
  return absl::StrCat(job::TfJobRoleName(task.role), " ", task.index, " (pod ", pod.name(),
                      ") failed", code ? absl::StrCat(" with exit code ", *code) : "",
                      reason.empty() || reason == "Error" ? "" : absl::StrCat(" (", reason, ")"));
}

std::string WhyLost(const cluster::TaskId& task, const Child& pod) {
  const auto lost = pod.why_lost();
  return absl::StrCat(job::TfJobRoleName(task.role), " ", task.index, " (pod ", pod.name(),
                      ") was lost: ", lost ? *lost : pod.disruption());
}

void RecordRestart(ReconcileContext& context, const cluster::TaskId& task, const Child& pod,
                   PodOutcome outcome) {
  context.restart_reason = outcome == PodOutcome::kLost ? WhyLost(task, pod) : WhyFailed(task, pod);
  context.RecordEvent(true, "TFJobRestarting", context.restart_reason);
  if (const auto code = pod.exit_code()) {
    context.RecordEvent(false, "ExitedWithCode",
                        absl::StrCat("Pod: ", context.job().kubernetes_namespace(), ".", pod.name(),
                                     " exited with code ", *code));
  }
}

// Records the replacements that are due for pods of that outcome: one for each pod, or one for the
// whole job.
void RecordReplacements(ReconcileContext& context, PodOutcome outcome) {
  for (const auto& [task, pod] : context.pods()) {
    const job::RoleSpec* role = context.RoleOf(task);
    if (role == nullptr || OutcomeOf(context, *role, task, pod) != outcome) continue;
    const std::string record = context.RestartRecord(task);
    const bool fresh = outcome == PodOutcome::kLost
                           ? RecordLoss(context.status(), record, pod.uid(), context.now())
                           : CountFailure(context.status(), record, pod.uid());
    if (fresh) RecordRestart(context, task, pod, outcome);
    if (fresh && record == kWholeJob) return;
  }
}

// Fails the job if a task, or the whole job, has exceeded max_restarts. Returns whether it did.
bool EvaluateMaxRestarts(ReconcileContext& context) {
  const auto limit = context.job().max_restarts();
  if (!limit) return false;
  std::map<std::string, int> counts;
  for (const auto& [record, unused] : ObjectAt(context.status(), "/restarts").items()) {
    counts[record] = FailuresOf(context.status(), record);
  }
  for (const auto& [task, pod] : context.pods()) {
    if (context.RoleOf(task) != nullptr) counts[task.ToString()] += pod.restarts();
  }
  for (const auto& [task, count] : counts) {
    if (count <= *limit) continue;
    return context.Finish(
        kFailed, "MaxRestartsExceeded",
        absl::StrCat(task == kWholeJob ? "the whole job" : task, ": max_restarts (", *limit,
                     ") exceeded", context.restart_reason.empty() ? "" : ": ",
                     context.restart_reason));
  }
  return false;
}

bool EvaluateRestarts(ReconcileContext& context) {
  const bool whole = context.job().spec().policies.restart_scope == job::RestartScope::kJob;
  RecordReplacements(context, PodOutcome::kLost);
  if (!RestartsForALoss(context)) RecordReplacements(context, PodOutcome::kRetried);
  if (EvaluateMaxRestarts(context)) return true;
  int total = Failures(context.status());
  for (const auto& [task, pod] : context.pods()) {
    if (context.RoleOf(task) != nullptr) total += pod.restarts();
  }
  const auto limit = context.job().backoff_limit();
  if (!limit || !IsPastBackoff(total, *limit)) {
    if (whole && !context.restart_reason.empty()) context.RestartJob();
    return false;
  }
  return context.Finish(
      kFailed, "BackoffLimitExceeded",
      absl::StrCat("TFJob ", context.job().name(), " has reached its backoff limit (", *limit,
                   ") with failure ", total, context.restart_reason.empty() ? "" : ": ",
                   context.restart_reason));
}

}  // namespace

bool IsReplaced(ReconcileContext& context, const job::RoleSpec& role, const cluster::TaskId& task,
                const Child& pod) {
  const PodOutcome outcome = OutcomeOf(context, role, task, pod);
  return outcome == PodOutcome::kLost || outcome == PodOutcome::kRetried;
}

bool EvaluateOutcome(ReconcileContext& context) {
  const TfJob& job = context.job();
  if (Succeeded(context)) {
    return context.Finish(kSucceeded, "TFJobSucceeded",
                          absl::StrCat("TFJob ", job.name(), " successfully completed."));
  }
  if (!RestartsForALoss(context)) {
    for (const auto& [task, pod] : context.pods()) {
      const job::RoleSpec* role = context.RoleOf(task);
      if (role == nullptr || OutcomeOf(context, *role, task, pod) != PodOutcome::kFinal) continue;
      return context.Finish(kFailed, "TFJobFailed", WhyFailed(task, pod));
    }
  }
  if (const auto deadline = job.spec().policies.deadline) {
    const absl::Time end =
        k8s::TimeAt(context.status(), "/startTime").value_or(absl::InfinitePast()) + *deadline;
    if (context.now() >= end) {
      return context.Finish(
          kFailed, "DeadlineExceeded",
          absl::StrCat("TFJob ", job.name(), " was active longer than its deadline of ",
                       absl::ToInt64Seconds(*deadline), " s"));
    }
    context.RequeueAt(end);
  }
  return EvaluateRestarts(context);
}

}  // namespace muster::controller
