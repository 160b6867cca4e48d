#include "controller/verdict.h"

#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "controller/restarts.h"
#include "job/tfjob_format.h"

namespace muster::controller {
namespace {

constexpr int kFirstRetriedCode = 128;

bool Succeeded(Pass& pass) {
  const JobSpec& spec = pass.job().spec();
  const auto chief = ChiefTask(spec);
  if (spec.policies.success == SuccessPolicy::kChief || (chief && IsChiefRole(chief->role))) {
    return chief && pass.HasSucceeded(*chief);
  }
  const RoleSpec* workers = spec.FindRole("worker");
  if (workers == nullptr || workers->replicas == 0) return false;
  for (int i = 0; i < workers->replicas; ++i) {
    if (!pass.HasSucceeded({"worker", i})) return false;
  }
  return true;
}

bool IsDynamicWorker(const TfJob& job, const RoleSpec& role) {
  return job.spec().dynamic_workers && role.name == "worker";
}

// Whether the failure of a pod's program ends the job.
bool IsFinal(const TfJob& job, const RoleSpec& role, const Child& pod) {
  if (IsDynamicWorker(job, role)) return false;
  // What lacked memory lacks it the next time too. v1's rule knows only the exit code.
  if (job.is_v1alpha1() && pod.reason() == "OOMKilled") return true;
  if (role.restart == RestartPolicy::kNever) return true;
  if (role.restart != RestartPolicy::kExitCode) return false;
  return pod.exit_code().value_or(1) < kFirstRetriedCode;
}

enum class Fate {
  kNone,     // has not failed, or stays as it is
  kLost,     // is replaced and counts against no limit
  kRetried,  // is replaced, and counts
  kFinal,    // ends the job
};

// The one rule for pods that have failed. One that is being deleted has no end to judge; only a job
// that restarts as one must begin anew when the cluster takes one of its pods.
Fate FateOf(Pass& pass, const RoleSpec& role, const TaskId& task, const Child& pod) {
  if (pass.HasSucceeded(task)) return Fate::kNone;
  if (pod.deleting() && pass.RestartRecord(task) == kWholeJob && !pod.disruption().empty()) {
    return Fate::kLost;
  }
  if (!pod.failed()) return Fate::kNone;
  if (pod.why_lost()) return Fate::kLost;
  if (IsFinal(pass.job(), role, pod)) return Fate::kFinal;
  const bool stays = IsDynamicWorker(pass.job(), role) && role.restart == RestartPolicy::kNever;
  return stays ? Fate::kNone : Fate::kRetried;
}

// Whether the whole job restarts because one of its pods was lost: that the others failed is a
// consequence, whatever their exit codes are.
bool RestartsForALoss(Pass& pass) {
  if (pass.job().spec().policies.restart_scope != RestartScope::kJob) return false;
  return std::any_of(pass.pods().begin(), pass.pods().end(), [&](const auto& slot) {
    const RoleSpec* role = pass.RoleOf(slot.first);
    return role != nullptr && FateOf(pass, *role, slot.first, slot.second) == Fate::kLost;
  });
}

// Whether so many restarts, the one that is due included, fail a job of that back-off limit. As
// Kubeflow's: at the limit, and not beyond it.
bool IsPastBackoff(int restarts, int limit) { return restarts > 0 && restarts >= limit; }

std::string WhyFailed(const TaskId& task, const Child& pod) {
  const std::string reason = pod.reason();
  const auto code = pod.exit_code();
  return absl::StrCat(TfJobRoleName(task.role), " ", task.index, " (pod ", pod.name(), ") failed",
                      code ? absl::StrCat(" with exit code ", *code) : "",
                      reason.empty() || reason == "Error" ? "" : absl::StrCat(" (", reason, ")"));
}

std::string WhyLost(const TaskId& task, const Child& pod) {
  const auto lost = pod.why_lost();
  return absl::StrCat(TfJobRoleName(task.role), " ", task.index, " (pod ", pod.name(),
                      ") was lost: ", lost ? *lost : pod.disruption());
}

void TellRestart(Pass& pass, const TaskId& task, const Child& pod, Fate fate) {
  pass.restarted = fate == Fate::kLost ? WhyLost(task, pod) : WhyFailed(task, pod);
  pass.Tell(true, "TFJobRestarting", pass.restarted);
  if (const auto code = pod.exit_code()) {
    pass.Tell(false, "ExitedWithCode",
              absl::StrCat("Pod: ", pass.job().kubernetes_namespace(), ".", pod.name(),
                           " exited with code ", *code));
  }
}

// Records the replacements of one fate that are about to be made: one for each pod; or one of the
// whole job, whichever of its pods it is.
void RecordReplacements(Pass& pass, Fate fate) {
  for (const auto& [task, pod] : pass.pods()) {
    const RoleSpec* role = pass.RoleOf(task);
    if (role == nullptr || FateOf(pass, *role, task, pod) != fate) continue;
    const std::string record = pass.RestartRecord(task);
    const bool fresh = fate == Fate::kLost
                           ? RecordLoss(pass.status(), record, pod.uid(), pass.now())
                           : CountFailure(pass.status(), record, pod.uid());
    if (fresh) TellRestart(pass, task, pod, fate);
    if (fresh && record == kWholeJob) return;
  }
}

// Whether one task, or the whole job, has been started again too often.
bool JudgeEach(Pass& pass) {
  const auto limit = pass.job().max_restarts();
  if (!limit) return false;
  std::map<std::string, int> counts;
  for (const auto& [record, unused] : ObjectAt(pass.status(), "/restarts").items()) {
    counts[record] = FailuresOf(pass.status(), record);
  }
  for (const auto& [task, pod] : pass.pods()) {
    if (pass.RoleOf(task) != nullptr) counts[task.ToString()] += pod.restarts();
  }
  for (const auto& [task, count] : counts) {
    if (count <= *limit) continue;
    return pass.Finish(
        kFailed, "MaxRestartsExceeded",
        absl::StrCat(task == kWholeJob ? "the whole job" : task, ": max_restarts (", *limit,
                     ") exceeded", pass.restarted.empty() ? "" : ": ", pass.restarted));
  }
  return false;
}

bool JudgeRestarts(Pass& pass) {
  const bool whole = pass.job().spec().policies.restart_scope == RestartScope::kJob;
  RecordReplacements(pass, Fate::kLost);
  if (!RestartsForALoss(pass)) RecordReplacements(pass, Fate::kRetried);
  if (JudgeEach(pass)) return true;
  int total = Failures(pass.status());
  for (const auto& [task, pod] : pass.pods()) {
    if (pass.RoleOf(task) != nullptr) total += pod.restarts();
  }
  const auto limit = pass.job().backoff_limit();
  if (!limit || !IsPastBackoff(total, *limit)) {
    if (whole && !pass.restarted.empty()) pass.BeginAnew();
    return false;
  }
  return pass.Finish(
      kFailed, "BackoffLimitExceeded",
      absl::StrCat("TFJob ", pass.job().name(), " has reached its back-off limit (", *limit,
                   ") with failure ", total, pass.restarted.empty() ? "" : ": ", pass.restarted));
}

}  // namespace

bool IsReplaced(Pass& pass, const RoleSpec& role, const TaskId& task, const Child& pod) {
  const Fate fate = FateOf(pass, role, task, pod);
  return fate == Fate::kLost || fate == Fate::kRetried;
}

bool Judge(Pass& pass) {
  const TfJob& job = pass.job();
  if (Succeeded(pass)) {
    return pass.Finish(kSucceeded, "TFJobSucceeded",
                       absl::StrCat("TFJob ", job.name(), " successfully completed."));
  }
  if (!RestartsForALoss(pass)) {
    for (const auto& [task, pod] : pass.pods()) {
      const RoleSpec* role = pass.RoleOf(task);
      if (role == nullptr || FateOf(pass, *role, task, pod) != Fate::kFinal) continue;
      return pass.Finish(kFailed, "TFJobFailed", WhyFailed(task, pod));
    }
  }
  if (const auto deadline = job.spec().policies.deadline) {
    const absl::Time end =
        k8s::TimeAt(pass.status(), "/startTime").value_or(absl::InfinitePast()) + *deadline;
    if (pass.now() >= end) {
      return pass.Finish(kFailed, "DeadlineExceeded",
                         absl::StrCat("TFJob ", job.name(), " was active longer than ",
                                      absl::ToInt64Seconds(*deadline), " s, its deadline"));
    }
    pass.Wake(end);
  }
  return JudgeRestarts(pass);
}

}  // namespace muster::controller
