#include "controller/reconcile.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "controller/children.h"
#include "controller/conditions.h"

namespace muster::controller {
namespace {

constexpr char kOwnName[] = "kubeflow.org/training-operator";
constexpr int kFirstRetriedCode = 128;

// Role names as the manifest spells them.
std::string Title(const std::string& role) {
  if (role == "ps") return "PS";
  std::string title = role;
  title[0] = static_cast<char>(title[0] - 'a' + 'A');
  return title;
}

class Reconciler {
 public:
  Reconciler(const TfJob& job, const Observed& observed, absl::Time now)
      : job_(job),
        now_(now),
        pods_(Claim(job, observed.pods)),
        services_(Claim(job, observed.services)) {
    plan_.status = ObjectAt(observed.job, "status");
  }

  Plan Run() {
    const Json before = plan_.status;
    if (!IsTrue(plan_.status, kCreated)) {
      Set({kCreated, true, "TFJobCreated", absl::StrCat("TFJob ", job_.name(), " is created.")});
      WarnOfPolicies();
    }
    if (IsFinished(plan_.status)) {
      CleanUp();
    } else if (job_.suspended()) {
      Suspend();
    } else {
      Work();
    }
    plan_.status_changed = plan_.status != before;
    return std::move(plan_);
  }

 private:
  void Set(const Condition& condition) { SetCondition(plan_.status, condition, now_); }
  void Tell(bool warning, std::string reason, std::string message) {
    plan_.events.push_back({warning, std::move(reason), std::move(message)});
  }
  void Wake(absl::Time time) { plan_.wake = std::min(plan_.wake, time); }

  // What a template says of restarts has no effect, which its author may not know.
  void WarnOfPolicies() {
    for (const RoleSpec* role : job_.roles()) {
      const std::string policy = TextAt(ObjectAt(role->pod, "spec"), "restartPolicy");
      if (policy.empty()) continue;
      Tell(true, "SetPodTemplateRestartPolicy",
           absl::StrCat("Restart policy ", policy, " in the pod template of ", Title(role->name),
                        " is overwritten by that of its replica spec"));
    }
  }

  // Unless that is under way. One whose node is lost does not go by itself.
  void Remove(Kind kind, const Child& child) {
    if (!child.deleting()) {
      plan_.actions.push_back(Delete{kind, child.name(), child.uid()});
    } else if (kind == Kind::kPod) {
      const absl::Time stuck = child.gone_by() + job_.lost_after();
      if (now_ >= stuck) {
        plan_.actions.push_back(Delete{kind, child.name(), child.uid(), /*at_once=*/true});
      } else {
        Wake(stuck);
      }
    }
  }

  static bool IsAtWork(const Child& pod) {
    return pod.phase() == Phase::kRunning || pod.phase() == Phase::kPending;
  }

  // Done when a job is over; what is left is as the user wants it.
  void CleanUp() {
    const std::string policy = job_.clean_pod_policy();
    for (const auto& [task, pod] : pods_.slots) {
      if (policy == "All" || (policy == "Running" && IsAtWork(pod))) Remove(Kind::kPod, pod);
    }
    for (const auto& [task, service] : services_.slots) {
      const auto pod = pods_.slots.find(task);
      const bool goes = pod == pods_.slots.end() || IsAtWork(pod->second);  // as its pod does
      if (policy == "All" || (policy == "Running" && goes)) Remove(Kind::kService, service);
    }
    if (const auto ttl = job_.ttl()) {
      const absl::Time end = TimeFromText(plan_.status.value("completionTime", Json())) + *ttl;
      if (now_ >= end) {
        plan_.actions.push_back(DeleteJob{});
      } else {
        Wake(end);
      }
    }
  }

  void Suspend() {
    for (const auto& [task, pod] : pods_.slots) Remove(Kind::kPod, pod);
    for (const auto& [task, service] : services_.slots) Remove(Kind::kService, service);
    if (!IsTrue(plan_.status, kSuspended)) {
      const std::string message = absl::StrCat("TFJob ", job_.name(), " is suspended.");
      Set({kSuspended, true, "TFJobSuspended", message});
      Tell(false, "TFJobSuspended", message);
    }
    plan_.status.erase("startTime");
    Count();
    plan_.status.erase("succeeded");  // once resumed, all begin anew
  }

  void Work() {
    if (IsTrue(plan_.status, kSuspended)) {
      const std::string message = absl::StrCat("TFJob ", job_.name(), " is resumed.");
      Set({kSuspended, false, "TFJobResumed", message});
      Tell(false, "TFJobResumed", message);
    }
    if (!plan_.status.contains("startTime")) plan_.status["startTime"] = k8s::Timestamp(now_);
    for (const Child& orphan : pods_.orphans) {
      plan_.actions.push_back(Adopt{Kind::kPod, orphan.name(), orphan.uid()});
    }
    for (const Child& orphan : services_.orphans) {
      plan_.actions.push_back(Adopt{Kind::kService, orphan.name(), orphan.uid()});
    }
    Count();
    if (Judge()) return;  // the rest is done once the verdict is written
    for (const RoleSpec* role : job_.roles()) Fill(*role);
    if (!restarted_.empty()) {
      Set({kRestarting, true, "TFJobRestarting",
           absl::StrCat("TFJob ", job_.name(), " is restarting: ", restarted_)});
    } else if (IsUp()) {
      Set({kRunning, true, "TFJobRunning", absl::StrCat("TFJob ", job_.name(), " is running.")});
    }
  }

  bool IsActive(const Child& pod) const {
    return !pod.deleting() && pod.phase() == Phase::kRunning;
  }

  // How many of each role are at work, and what has succeeded for good.
  void Count() {
    Json counts = Json::object();
    for (const RoleSpec* role : job_.roles()) {
      int active = 0, succeeded = 0, failed = 0;
      for (int i = 0; i < role->replicas; ++i) {
        const TaskId task{role->name, i};
        if (HasSucceeded(task)) ++succeeded;
        const auto pod = pods_.slots.find(task);
        if (pod == pods_.slots.end()) continue;
        if (IsActive(pod->second)) ++active;
        if (pod->second.phase() == Phase::kFailed) ++failed;
      }
      counts[Title(role->name)] = {
          {"active", active}, {"succeeded", succeeded}, {"failed", failed}};
    }
    plan_.status["replicaStatuses"] = std::move(counts);
  }

  // What has succeeded once is remembered: its pod may be collected, and never runs again.
  bool HasSucceeded(const TaskId& task) {
    const auto pod = pods_.slots.find(task);
    Json& done = plan_.status["succeeded"];
    if (!done.is_array()) done = Json::array();
    const std::string name = task.ToString();
    if (pod != pods_.slots.end() && pod->second.phase() == Phase::kSucceeded &&
        std::find(done.begin(), done.end(), name) == done.end()) {
      done.push_back(name);
    }
    const bool found = std::find(done.begin(), done.end(), name) != done.end();
    if (done.empty()) plan_.status.erase("succeeded");
    return found;
  }

  bool Finish(const char* type, std::string reason, std::string message) {
    const bool failed = type == kFailed;
    Tell(failed, failed ? "TFJobFailed" : "TFJobSucceeded", message);
    Set({type, true, std::move(reason), std::move(message)});
    plan_.status["completionTime"] = k8s::Timestamp(now_);
    plan_.actions.clear();
    return true;
  }

  bool Succeeded() {
    const JobSpec& spec = job_.spec();
    const auto chief = ChiefTask(spec);
    if (spec.policies.success == SuccessPolicy::kChief || (chief && IsChiefRole(chief->role))) {
      return chief && HasSucceeded(*chief);
    }
    const RoleSpec* workers = spec.FindRole("worker");
    if (workers == nullptr || workers->replicas == 0) return false;
    for (int i = 0; i < workers->replicas; ++i) {
      if (!HasSucceeded({"worker", i})) return false;
    }
    return true;
  }

  // Whether the job is over now.
  bool Judge() {
    if (Succeeded()) {
      return Finish(kSucceeded, "TFJobSucceeded",
                    absl::StrCat("TFJob ", job_.name(), " successfully completed."));
    }
    for (const auto& [task, pod] : pods_.slots) {
      const RoleSpec* role = job_.spec().FindRole(task.role);
      if (role == nullptr || task.index >= role->replicas || pod.phase() != Phase::kFailed)
        continue;
      if (IsFinal(*role, pod)) return Finish(kFailed, "TFJobFailed", WhyFailed(task, pod));
    }
    if (const auto deadline = job_.spec().policies.deadline) {
      const absl::Time end = TimeFromText(plan_.status["startTime"]) + *deadline;
      if (now_ >= end) {
        return Finish(kFailed, "DeadlineExceeded",
                      absl::StrCat("TFJob ", job_.name(), " was active longer than ",
                                   absl::ToInt64Seconds(*deadline), " s, its deadline"));
      }
      Wake(end);
    }
    return JudgeRestarts();
  }

  // Counts the restarts that are about to be made, once for each pod that has failed.
  bool JudgeRestarts() {
    Json& restarts = plan_.status["restarts"];
    if (!restarts.is_object()) restarts = Json::object();
    for (const auto& [task, pod] : pods_.slots) {
      const RoleSpec* role = job_.spec().FindRole(task.role);
      if (role == nullptr || task.index >= role->replicas || !IsRetried(*role, task, pod)) continue;
      Json& own = restarts[task.ToString()];
      if (TextAt(own, "lastPod") == pod.uid()) continue;
      own = {{"count", own.is_object() ? own.value("count", 0) + 1 : 1}, {"lastPod", pod.uid()}};
      restarted_ = WhyFailed(task, pod);
      Tell(true, "TFJobRestarting", restarted_);
      if (const auto code = pod.exit_code()) {
        Tell(false, "ExitedWithCode",
             absl::StrCat("Pod: ", job_.kubernetes_namespace(), ".", pod.name(),
                          " exited with code ", *code));
      }
    }
    int total = 0;
    for (const auto& [task, own] : restarts.items()) total += own.value("count", 0);
    for (const auto& [task, pod] : pods_.slots) total += pod.restarts();
    if (restarts.empty()) plan_.status.erase("restarts");
    const auto limit = job_.backoff_limit();
    if (!limit || total <= *limit) return false;
    return Finish(kFailed, "BackoffLimitExceeded",
                  absl::StrCat("TFJob ", job_.name(), " has failed: ", total,
                               " restarts, and its back-off limit is ", *limit,
                               restarted_.empty() ? "" : "; ", restarted_));
  }

  bool IsDynamicWorker(const RoleSpec& role) const {
    return job_.spec().dynamic_workers && role.name == "worker";
  }

  // Whether a pod that failed ends the job.
  bool IsFinal(const RoleSpec& role, const Child& pod) const {
    if (IsDynamicWorker(role)) return false;
    // Lost with its node, or put off it: not the program's doing.
    if (!pod.exit_code() && !pod.reason().empty()) return false;
    if (role.restart == RestartPolicy::kNever) return true;
    if (role.restart != RestartPolicy::kExitCode) return false;
    return pod.exit_code().value_or(1) < kFirstRetriedCode;
  }

  bool IsRetried(const RoleSpec& role, const TaskId& task, const Child& pod) {
    return pod.phase() == Phase::kFailed && !HasSucceeded(task) && !IsFinal(role, pod) &&
           !(IsDynamicWorker(role) && role.restart == RestartPolicy::kNever);
  }

  std::string WhyFailed(const TaskId& task, const Child& pod) const {
    const std::string reason = pod.reason();
    const auto code = pod.exit_code();
    return absl::StrCat(Title(task.role), " ", task.index, " (pod ", pod.name(), ") failed",
                        code ? absl::StrCat(" with exit code ", *code) : "",
                        reason.empty() || reason == "Error" ? "" : absl::StrCat(" (", reason, ")"));
  }

  // Makes what a role lacks, and removes what it has too much or must be made anew.
  void Fill(const RoleSpec& role) {
    for (const auto& [task, pod] : pods_.slots) {
      if (task.role != role.name) continue;
      if (task.index >= role.replicas || pod.deleting() || IsRetried(role, task, pod)) {
        Remove(Kind::kPod, pod);
      }
    }
    for (const auto& [task, service] : services_.slots) {
      if (task.role == role.name && task.index >= role.replicas) Remove(Kind::kService, service);
    }
    for (int i = 0; i < role.replicas; ++i) {
      const TaskId task{role.name, i};
      if (!services_.slots.contains(task) && IsFree(services_, task)) {
        plan_.actions.push_back(Create{Kind::kService, job_.ServiceOf(task)});
      }
      if (pods_.slots.contains(task) || HasSucceeded(task) || !IsFree(pods_, task)) continue;
      auto pod = job_.PodOf(task);
      if (!pod.ok()) {
        Tell(true, "FailedCreatePod", std::string(pod.status().message()));
        continue;
      }
      plan_.actions.push_back(Create{Kind::kPod, *std::move(pod)});
    }
  }

  // Whether the name of a task is: an orphan is adopted, what another owns is in the way.
  bool IsFree(const Claims& claims, const TaskId& task) {
    const std::string name = job_.NameOf(task);
    const auto has_name = [&](const Child& child) { return child.name() == name; };
    if (std::any_of(claims.foreign.begin(), claims.foreign.end(), has_name)) {
      Tell(true, "FailedCreate",
           absl::StrCat(name, " is there already and belongs to another; delete or rename one"));
      return false;
    }
    return std::none_of(claims.orphans.begin(), claims.orphans.end(), has_name);
  }

  // The chief is at work; without one, a worker.
  bool IsUp() const {
    const auto chief = ChiefTask(job_.spec());
    if (chief && IsChiefRole(chief->role)) {
      const auto pod = pods_.slots.find(*chief);
      return pod != pods_.slots.end() && IsActive(pod->second);
    }
    return std::any_of(pods_.slots.begin(), pods_.slots.end(), [this](const auto& slot) {
      return slot.first.role == "worker" && IsActive(slot.second);
    });
  }

  const TfJob& job_;
  const absl::Time now_;
  const Claims pods_;
  const Claims services_;
  Plan plan_;
  std::string restarted_;  // why, of the last
};

// A job that nobody has checked before: it says what is wrong with it, and stays as it is.
Plan Refuse(const Observed& observed, const absl::Status& mistakes, absl::Time now) {
  Plan plan{.status = ObjectAt(observed.job, "status")};
  const Json before = plan.status;
  if (!IsFinished(plan.status)) {
    plan.events.push_back({true, "TFJobFailed", std::string(mistakes.message())});
  }
  SetCondition(plan.status, {kFailed, true, "FailedValidation", std::string(mistakes.message())},
               now);
  if (plan.status != before) plan.status["completionTime"] = k8s::Timestamp(now);
  plan.status_changed = plan.status != before;
  return plan;
}

}  // namespace

Plan Reconcile(const Observed& observed, const TfJobOptions& options, absl::Time now) {
  const Json metadata = ObjectAt(observed.job, "metadata");
  const std::string manager =
      TextAt(ObjectAt(ObjectAt(observed.job, "spec"), "runPolicy"), "managedBy");
  // What is going takes what it owns along.
  if (metadata.contains("deletionTimestamp") || (!manager.empty() && manager != kOwnName)) {
    return {.status = ObjectAt(observed.job, "status")};
  }
  const auto job = TfJob::Parse(observed.job, options);
  if (!job.ok()) return Refuse(observed, job.status(), now);
  return Reconciler(*job, observed, now).Run();
}

}  // namespace muster::controller
