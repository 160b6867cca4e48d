#include "controller/verdict.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
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

// Whether a pod that failed ends the job.
bool IsFinal(const TfJob& job, const RoleSpec& role, const Child& pod) {
  if (IsDynamicWorker(job, role)) return false;
  // What lacked memory lacks it the next time too. v1's rule knows only the exit code.
  if (job.is_v1alpha1() && pod.reason() == "OOMKilled") return true;
  // Lost with its node, or put off it: not the program's doing.
  if (!pod.exit_code() && !pod.reason().empty()) return false;
  if (role.restart == RestartPolicy::kNever) return true;
  if (role.restart != RestartPolicy::kExitCode) return false;
  return pod.exit_code().value_or(1) < kFirstRetriedCode;
}

std::string WhyFailed(const TaskId& task, const Child& pod) {
  const std::string reason = pod.reason();
  const auto code = pod.exit_code();
  return absl::StrCat(TfJobRoleName(task.role), " ", task.index, " (pod ", pod.name(), ") failed",
                      code ? absl::StrCat(" with exit code ", *code) : "",
                      reason.empty() || reason == "Error" ? "" : absl::StrCat(" (", reason, ")"));
}

void TellRestart(Pass& pass, const TaskId& task, const Child& pod) {
  pass.restarted = WhyFailed(task, pod);
  pass.Tell(true, "TFJobRestarting", pass.restarted);
  if (const auto code = pod.exit_code()) {
    pass.Tell(false, "ExitedWithCode",
              absl::StrCat("Pod: ", pass.job().kubernetes_namespace(), ".", pod.name(),
                           " exited with code ", *code));
  }
}

// Counts the restarts that are about to be made: one for each pod that has failed; or one of the
// whole job, whichever of its pods failed.
void CountRestarts(Pass& pass, Json& restarts) {
  const bool whole = pass.job().spec().policies.restart_scope == RestartScope::kJob;
  for (const auto& [task, pod] : pass.pods()) {
    const RoleSpec* role = pass.RoleOf(task);
    if (role == nullptr || !IsRetried(pass, *role, task, pod)) continue;
    Json& own = restarts[whole ? "job" : task.ToString()];
    if (k8s::TextAt(own, "/lastPod") == pod.uid()) continue;
    own = {{"count", own.is_object() ? own.value("count", 0) + 1 : 1}, {"lastPod", pod.uid()}};
    TellRestart(pass, task, pod);
    if (whole) return;
  }
}

// Whether one task, or the whole job, has been started again too often.
bool JudgeEach(Pass& pass, const Json& restarts) {
  const auto limit = pass.job().max_restarts();
  if (!limit) return false;
  std::map<std::string, int> counts;
  for (const auto& [task, own] : restarts.items()) counts[task] = own.value("count", 0);
  for (const auto& [task, pod] : pass.pods()) {
    if (pass.RoleOf(task) != nullptr) counts[task.ToString()] += pod.restarts();
  }
  for (const auto& [task, count] : counts) {
    if (count <= *limit) continue;
    return pass.Finish(
        kFailed, "MaxRestartsExceeded",
        absl::StrCat(task == "job" ? "the whole job" : task, " would restart for the ", count,
                     ". time, and max_restarts is ", *limit, pass.restarted.empty() ? "" : "; ",
                     pass.restarted));
  }
  return false;
}

bool JudgeRestarts(Pass& pass) {
  Json& restarts = pass.status()["restarts"];
  if (!restarts.is_object()) restarts = Json::object();
  CountRestarts(pass, restarts);
  if (JudgeEach(pass, restarts)) return true;
  int total = 0;
  for (const auto& [task, own] : restarts.items()) total += own.value("count", 0);
  for (const auto& [task, pod] : pass.pods()) {
    if (pass.RoleOf(task) != nullptr) total += pod.restarts();
  }
  if (restarts.empty()) pass.status().erase("restarts");
  const auto limit = pass.job().backoff_limit();
  if (!limit || total <= *limit) {
    const bool whole = pass.job().spec().policies.restart_scope == RestartScope::kJob;
    if (whole && !pass.restarted.empty()) pass.BeginAnew();
    return false;
  }
  return pass.Finish(kFailed, "BackoffLimitExceeded",
                     absl::StrCat("TFJob ", pass.job().name(), " has failed: ", total,
                                  " restarts, and its back-off limit is ", *limit,
                                  pass.restarted.empty() ? "" : "; ", pass.restarted));
}

}  // namespace

bool IsRetried(Pass& pass, const RoleSpec& role, const TaskId& task, const Child& pod) {
  return pod.phase() == Phase::kFailed && !pass.HasSucceeded(task) &&
         !IsFinal(pass.job(), role, pod) &&
         !(IsDynamicWorker(pass.job(), role) && role.restart == RestartPolicy::kNever);
}

bool Judge(Pass& pass) {
  const TfJob& job = pass.job();
  if (Succeeded(pass)) {
    return pass.Finish(kSucceeded, "TFJobSucceeded",
                       absl::StrCat("TFJob ", job.name(), " successfully completed."));
  }
  for (const auto& [task, pod] : pass.pods()) {
    const RoleSpec* role = pass.RoleOf(task);
    if (role == nullptr || pod.phase() != Phase::kFailed || !IsFinal(job, *role, pod)) continue;
    return pass.Finish(kFailed, "TFJobFailed", WhyFailed(task, pod));
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
