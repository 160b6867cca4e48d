#include "platform/kubernetes/observe.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text/terminal_text.h"
#include "job/failure.h"
#include "manifest/kept_status.h"
#include "platform/kubernetes/target.h"
#include "process/exit_status.h"
#include "supervise/exit_cause.h"

namespace muster::kubernetes {
namespace {

// An operator accepts a job within moments. A job that is not accepted for this long has none.
constexpr absl::Duration kOperatorTimeout = absl::Seconds(10);

// Returns the condition of a job if it is true, else null.
const Json* FindCondition(const Json& job, absl::string_view type) {
  const Json* status = k8s::Find(job, "/status");
  return status == nullptr ? nullptr : k8s::FindTrueCondition(*status, type);
}

// Returns the restarts that Muster's operator counts: those of the task and of the whole job.
int CountedRestarts(const Json& status, const cluster::TaskId& task) {
  int count = 0;
  for (const std::string& record : {task.ToString(), std::string("job")}) {
    count += k8s::CountAt(status, absl::StrCat("/restarts/", record, "/count"));
  }
  return count;
}

// A manifest's container without a command runs the entry point of its image.
std::string CommandOf(const job::RoleSpec& role) {
  if (!role.command.empty()) return base::ShellJoin(role.command);
  return role.pod.is_null() ? "muster-trainer" : absl::StrCat("(the image's: ", role.image, ")");
}

class PodObserver final : public platform::Observer {
 public:
  PodObserver(const platform::KnownJob& known, const Observation& observation)
      : Observer(known, observation.now), observation_(observation) {
    for (const Json& pod : observation.pods) {
      const auto task = manifest::TaskOf(pod);
      if (task) pods_[*task] = &pod;
    }
    if (observation.job) status_ = manifest::KeptStatus(*observation.job);
  }

 private:
  bool ReadJob() override {
    if (!observation_.job) return false;
    ReadObject(*observation_.job);
    return true;
  }

  void ReadObject(const Json& object) {
    job::JobRecord& job = change_.job;
    job.started = k8s::TimeAt(object, "/status/startTime");
    job.reason.clear();
    if (const Json* refused = FindCondition(object, "ReplicaFailure")) {
      refused_ = base::Printable(k8s::TextAt(*refused, "/message"));
    }
    // The order matters: several conditions may be true, and the first match decides.
    if (const auto verdict = VerdictOf(object); verdict && MayStillFinish(*verdict, object)) {
      job.reason = "succeeded; the other tasks may finish";
    } else if (verdict) {
      Conclude(*verdict, object);
    } else if (k8s::IsBeingDeleted(object)) {
      job.reason = "being deleted from the cluster";
    } else if (FindCondition(object, "Suspended") != nullptr) {
      SetState(job::JobState::kSuspended);
    } else if (const Json* restarting = FindCondition(object, "Restarting")) {
      SetState(job::JobState::kRestarting);
      job.reason = k8s::TextAt(*restarting, "/message");
    } else if (FindCondition(object, "Running") != nullptr) {
      SetState(job::JobState::kRunning);
    } else if (FindCondition(object, "Created") != nullptr) {
      SetState(job::JobState::kStarting);
    } else {
      SetState(job::JobState::kPending);
      if (observation_.now - known_.job.created > kOperatorTimeout) {
        job.reason = "no operator has accepted it; install one with `muster operator install`";
      }
    }
    if (!refused_.empty() && !job::IsFinal(job.state)) job.reason = refused_;
  }

  bool MayStillFinish(job::JobState verdict, const Json& object) const {
    const auto completed = k8s::TimeAt(object, "/status/completionTime");
    return verdict == job::JobState::kSucceeded && completed &&
           observation_.now < *completed + FinishGrace(known_.submission.spec) &&
           std::any_of(observation_.pods.begin(), observation_.pods.end(), IsAtWork);
  }

  void SetState(job::JobState state) {
    job::JobRecord& job = change_.job;
    if (job.state == state) return;
    job.state = state;
    if (state == job::JobState::kRunning) RecordEvent("job", "", "Running");
    if (state == job::JobState::kSuspended) RecordEvent("job", "", "Suspended");
  }

  void Conclude(job::JobState verdict, const Json& object) {
    job::JobRecord& job = change_.job;
    job.state = verdict;
    job.finished = k8s::TimeAt(object, "/status/completionTime").value_or(observation_.now);
    if (verdict != job::JobState::kFailed) return;
    const Json* failed = FindCondition(object, "Failed");
    if (failed != nullptr) job.reason = base::Printable(k8s::TextAt(*failed, "/message"));
  }

  void ReadTasks() override {
    const cluster::ClusterSpec cluster = AddressesOf(known_.submission);
    for (const cluster::TaskId& id : known_.submission.spec.Tasks()) {
      const job::TaskRecord before = KnownTask(id);
      job::TaskRecord after = before;
      after.address = std::string(cluster.AddressOf(id));
      const job::RoleSpec& role = *known_.submission.spec.FindRole(id.role);
      after.command = CommandOf(role);
      const auto pod = pods_.find(id);
      if (pod != pods_.end()) {
        ReadPod(*pod->second, after);
      } else {
        WithoutPod(after);
      }
      if (after.state != before.state) RecordTaskEvent(before, after);
      if (after.state == before.state && after.state == job::TaskState::kPending &&
          after.reason != before.reason && !after.reason.empty()) {
        RecordEvent("task", id.ToString(), absl::StrCat("waits: ", after.reason));
      }
      SetTask(after);
    }
    for (const job::TaskRecord& task : known_.tasks) {
      const bool stays =
          std::any_of(tasks_.begin(), tasks_.end(),
                      [&](const job::TaskRecord& other) { return other.id == task.id; });
      if (!stays) change_.removed.push_back(task.id);
    }
  }

  void ReadPod(const Json& pod, job::TaskRecord& task) {
    const manifest::ContainerStatus container = manifest::StatusOf(pod);
    const std::string phase = k8s::TextAt(pod, "/status/phase");
    task.host = k8s::TextAt(pod, "/spec/nodeName");
    task.restarts = std::max(task.restarts, CountedRestarts(status_, task.id) + container.restarts);
    task.attempt = task.restarts;
    task.started = container.started;
    task.finished = container.finished;
    task.exit_code = container.exit_code;
    task.reason.clear();
    const auto lost = manifest::WhyLost(pod);
    if (!manifest::OutcomeCounts(pod) || (lost && job::IsFinal(change_.job.state))) {
      SetEndingState(task, manifest::Disruption(pod));
    } else if (phase == "Succeeded") {
      task.state = job::TaskState::kSucceeded;
    } else if (lost) {
      task.state = job::TaskState::kRestarting;
      task.reason = base::Printable(absl::StrCat("its pod was lost: ", *lost));
    } else if (phase == "Failed") {
      task.state = job::TaskState::kFailed;
      task.reason = WhyFailed(pod, container);
    } else if (job::IsFinal(change_.job.state)) {
      SetEndingState(task, "");
    } else if (container.running) {
      task.state = job::TaskState::kRunning;
    } else if (container.restarts > 0) {
      task.state = job::TaskState::kRestarting;
      task.reason = manifest::WhyWaiting(pod);
    } else {
      task.state = task.host.empty() ? job::TaskState::kPending : job::TaskState::kStarting;
      task.reason = base::Printable(manifest::WhyWaiting(pod));
    }
  }

  void WithoutPod(job::TaskRecord& task) {
    if (change_.job.state == job::JobState::kSuspended) {
      task.state = job::TaskState::kPending;
      task.reason.clear();
      task.host.clear();
      task.started.reset();
      return;
    }
    if (job::IsFinal(task.state)) return;
    if (job::IsFinal(change_.job.state)) {
      SetEndingState(task, "");
    } else if (task.state == job::TaskState::kRunning || task.state == job::TaskState::kStarting) {
      task.state = job::TaskState::kRestarting;
      task.reason = refused_.empty() ? "its pod is gone" : refused_;
    } else if (!refused_.empty()) {
      task.reason = refused_;
    }
  }

  // Sets the state of a task whose pod ends with its job or is replaced. `disruption` is the
  // cluster's reason, or "".
  void SetEndingState(job::TaskRecord& task, const std::string& disruption) {
    if (job::IsFinal(change_.job.state)) {
      task.state = job::TaskState::kStopped;
      task.reason = "ended with the job";
      if (!task.finished) task.finished = observation_.now;
    } else {
      task.exit_code.reset();
      task.finished.reset();
      const bool ends =
          k8s::IsBeingDeleted(*observation_.job) || change_.job.state == job::JobState::kSuspended;
      if (!ends && task.state != job::TaskState::kPending) task.state = job::TaskState::kRestarting;
      task.reason = "its pod is being deleted";
      if (!disruption.empty())
        task.reason = base::Printable(absl::StrCat(task.reason, ": ", disruption));
    }
  }

  static std::string WhyFailed(const Json& pod, const manifest::ContainerStatus& container) {
    const std::string of_pod = k8s::TextAt(pod, "/status/reason");
    if (!of_pod.empty()) return of_pod;
    if (container.reason == "OOMKilled") return "out of memory";
    if (container.exit_code) return process::ExitStatus::Exited(*container.exit_code).Describe();
    return container.reason;
  }

  void RecordTaskEvent(const job::TaskRecord& before, const job::TaskRecord& after) {
    const std::string why = after.reason.empty() ? "" : absl::StrCat(": ", after.reason);
    const std::string name = after.id.ToString();
    switch (after.state) {
      case job::TaskState::kRunning:
        RecordEvent("task", name, absl::StrCat("running on ", after.host));
        break;
      case job::TaskState::kSucceeded:
        RecordEvent("task", name, "succeeded");
        break;
      case job::TaskState::kFailed:
        RecordEvent("task", name, absl::StrCat("failed", why));
        break;
      case job::TaskState::kRestarting:
        RecordEvent("restart", name, absl::StrCat("restarts", why));
        break;
      default:
        if (before.state == job::TaskState::kFailed && !job::IsFinal(after.state)) {
          RecordEvent("restart", name, "has a new pod");
        }
    }
  }

  // The time of the failure is that of the node's clock.
  job::TaskFailure FailureOf(const job::TaskRecord& task) const override {
    job::TaskFailure failure{.task = task.id,
                             .attempt = task.attempt,
                             .time = task.finished.value_or(observation_.now),
                             .exit_code = task.exit_code,
                             .cause = task.reason};
    failure.last_lines = known_.last_lines(task.id);
    if (task.exit_code) {
      const supervise::AttemptEnd end = supervise::ExplainExit(
          process::ExitStatus::Exited(*task.exit_code),
          {.last_lines = failure.last_lines, .oom_killed = task.reason == "out of memory"});
      failure.cause = end.reason;
      failure.advice = end.advice;
    }
    return failure;
  }

  const Observation& observation_;
  Json status_ = Json::object();  // of the TFJob
  std::string refused_;           // why pods cannot be created; "" if they can
  std::map<cluster::TaskId, const Json*> pods_;
};

}  // namespace

std::optional<job::JobState> VerdictOf(const Json& job) {
  if (FindCondition(job, "Succeeded") != nullptr) return job::JobState::kSucceeded;
  if (FindCondition(job, "Failed") != nullptr) return job::JobState::kFailed;
  return std::nullopt;
}

absl::Duration FinishGrace(const job::JobSpec& spec) {
  return spec.format == job::JobFormat::kNative ? spec.policies.finish_grace : absl::ZeroDuration();
}

bool IsAtWork(const Json& pod) { return manifest::TaskOf(pod) && manifest::StatusOf(pod).running; }

job::JobRecord RecordOf(const Json& job, absl::Time now) {
  job::JobRecord record{.id = k8s::NameOf(job), .name = k8s::NameOf(job), .platform = "kubernetes"};
  record.created = k8s::TimeAt(job, "/metadata/creationTimestamp").value_or(now);
  const job::Submission submission{.id = record.id};
  const std::vector<job::TaskRecord> tasks;
  const auto none = [](const cluster::TaskId&) { return std::vector<std::string>(); };
  const auto change = Compare({record, tasks, submission, none}, {.job = job, .now = now});
  if (change) record = change->job;
  record.failure.clear();
  const Json* roles = k8s::Find(job, "/spec/tfReplicaSpecs");
  if (roles == nullptr || !roles->is_object()) return record;
  for (const auto& [role, spec] : roles->items()) {
    const Json* replicas = k8s::Find(spec, "/replicas");
    const bool given = replicas != nullptr && replicas->is_number_integer();
    record.tasks += given ? replicas->get<int>() : 1;
  }
  return record;
}

std::optional<job::StateChange> Compare(const platform::KnownJob& known,
                                        const Observation& observation) {
  if (job::IsFinal(known.job.state)) return std::nullopt;
  // Deletion is how a job is stopped.
  return PodObserver(known, observation).Run("its TFJob was deleted from the cluster");
}

}  // namespace muster::kubernetes
