#include "platform/kubernetes/observe.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/terminal_text.h"
#include "job/failure.h"
#include "manifest/kept_status.h"
#include "platform/kubernetes/target.h"
#include "process/exit_status.h"
#include "supervise/exit_cause.h"

namespace muster::kubernetes {
namespace {

// Operators accept a job at once. A job that stays unaccepted for this long has no operator.
constexpr absl::Duration kOperatorTimeout = absl::Seconds(10);

// Returns the condition of a job if it is true, else null.
const Json* FindCondition(const Json& job, absl::string_view type) {
  const Json* status = k8s::Find(job, "/status");
  return status == nullptr ? nullptr : k8s::FindTrueCondition(*status, type);
}

// Returns the restarts that Muster's operator counts: those of the task and of the whole job.
int CountedRestarts(const Json& status, const TaskId& task) {
  int count = 0;
  for (const std::string& record : {task.ToString(), std::string("job")}) {
    count += k8s::CountAt(status, absl::StrCat("/restarts/", record, "/count"));
  }
  return count;
}

// A manifest's container without a command runs the entry point of its image.
std::string CommandOf(const RoleSpec& role) {
  if (!role.command.empty()) return ShellJoin(role.command);
  return role.pod.is_null() ? "muster-trainer" : absl::StrCat("(the image's: ", role.image, ")");
}

class PodObserver : private Observer {
 public:
  PodObserver(const Known& known, const Sight& sight) : Observer(known, sight.now), sight_(sight) {
    for (const Json& pod : sight.pods) {
      const auto task = manifest::TaskOf(pod);
      if (task) pods_[*task] = &pod;
    }
    if (sight.job) status_ = manifest::KeptStatus(*sight.job);
  }

  std::optional<StateChange> Run() {
    if (sight_.job) {
      ReadJob(*sight_.job);
    } else {
      Vanished("its TFJob was deleted from the cluster");  // deletion is how a job is stopped
    }
    ReadTasks();
    if (change_.job.state == JobState::kFailed) {
      change_.job.failure = Failure([this](const TaskRecord& task) { return FailureOf(task); });
    }
    return Finish();
  }

 private:
  void ReadJob(const Json& object) {
    JobRecord& job = change_.job;
    job.started = k8s::TimeAt(object, "/status/startTime");
    job.reason.clear();
    if (const Json* refused = FindCondition(object, "ReplicaFailure")) {
      refused_ = Printable(k8s::TextAt(*refused, "/message"));
    }
    if (const auto verdict = VerdictOf(object); verdict && MayStillFinish(*verdict, object)) {
      job.reason = "it has succeeded; the other tasks may finish";
    } else if (verdict) {
      Conclude(*verdict, object);
    } else if (k8s::IsBeingDeleted(object)) {
      job.reason = "it is being deleted from the cluster";
    } else if (FindCondition(object, "Suspended") != nullptr) {
      SetState(JobState::kSuspended);
    } else if (const Json* restarting = FindCondition(object, "Restarting")) {
      SetState(JobState::kRestarting);
      job.reason = k8s::TextAt(*restarting, "/message");
    } else if (FindCondition(object, "Running") != nullptr) {
      SetState(JobState::kRunning);
    } else if (FindCondition(object, "Created") != nullptr) {
      SetState(JobState::kStarting);
    } else {
      SetState(JobState::kPending);
      if (sight_.now - known_.job.created > kOperatorTimeout) {
        job.reason = "no operator has taken it up; `muster operator install` installs one";
      }
    }
    if (!refused_.empty() && !IsFinal(job.state)) job.reason = refused_;
  }

  bool MayStillFinish(JobState verdict, const Json& object) const {
    const auto completed = k8s::TimeAt(object, "/status/completionTime");
    return verdict == JobState::kSucceeded && completed &&
           sight_.now < *completed + FinishGrace(known_.submission.spec) &&
           std::any_of(sight_.pods.begin(), sight_.pods.end(), IsAtWork);
  }

  void SetState(JobState state) {
    JobRecord& job = change_.job;
    if (job.state == state) return;
    job.state = state;
    if (state == JobState::kRunning) Tell("job", "", "Running");
    if (state == JobState::kSuspended) Tell("job", "", "Suspended");
  }

  void Conclude(JobState verdict, const Json& object) {
    JobRecord& job = change_.job;
    job.state = verdict;
    job.finished = k8s::TimeAt(object, "/status/completionTime").value_or(sight_.now);
    if (verdict != JobState::kFailed) return;
    const Json* failed = FindCondition(object, "Failed");
    if (failed != nullptr) job.reason = Printable(k8s::TextAt(*failed, "/message"));
  }

  void ReadTasks() {
    const ClusterSpec cluster = AddressesOf(known_.submission);
    for (const TaskId& id : known_.submission.spec.Tasks()) {
      const TaskRecord before = Before(id);
      TaskRecord after = before;
      after.address = std::string(cluster.AddressOf(id));
      const RoleSpec& role = *known_.submission.spec.FindRole(id.role);
      after.command = CommandOf(role);
      const auto pod = pods_.find(id);
      if (pod != pods_.end()) {
        ReadPod(*pod->second, after);
      } else {
        WithoutPod(after);
      }
      if (after.state != before.state) TellOf(before, after);
      if (after.state == before.state && after.state == TaskState::kPending &&
          after.reason != before.reason && !after.reason.empty()) {
        Tell("task", id.ToString(), absl::StrCat("waits: ", after.reason));
      }
      After(after);
    }
    for (const TaskRecord& task : known_.tasks) {
      const bool stays = std::any_of(tasks_.begin(), tasks_.end(),
                                     [&](const TaskRecord& other) { return other.id == task.id; });
      if (!stays) change_.removed.push_back(task.id);
    }
  }

  void ReadPod(const Json& pod, TaskRecord& task) {
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
    if (!manifest::IsJudged(pod) || (lost && IsFinal(change_.job.state))) {
      Ending(task, manifest::Disruption(pod));
    } else if (phase == "Succeeded") {
      task.state = TaskState::kSucceeded;
    } else if (lost) {
      task.state = TaskState::kRestarting;
      task.reason = Printable(absl::StrCat("its pod was lost: ", *lost));
    } else if (phase == "Failed") {
      task.state = TaskState::kFailed;
      task.reason = WhyFailed(pod, container);
    } else if (IsFinal(change_.job.state)) {
      Ending(task, "");
    } else if (container.running) {
      task.state = TaskState::kRunning;
    } else if (container.restarts > 0) {
      task.state = TaskState::kRestarting;
      task.reason = manifest::WhyWaiting(pod);
    } else {
      task.state = task.host.empty() ? TaskState::kPending : TaskState::kStarting;
      task.reason = Printable(manifest::WhyWaiting(pod));
    }
  }

  void WithoutPod(TaskRecord& task) {
    if (change_.job.state == JobState::kSuspended) {
      task.state = TaskState::kPending;
      task.reason.clear();
      task.host.clear();
      task.started.reset();
      return;
    }
    if (IsFinal(task.state)) return;
    if (IsFinal(change_.job.state)) {
      Ending(task, "");
    } else if (task.state == TaskState::kRunning || task.state == TaskState::kStarting) {
      task.state = TaskState::kRestarting;
      task.reason = refused_.empty() ? "its pod is gone" : refused_;
    } else if (!refused_.empty()) {
      task.reason = refused_;
    }
  }

  // Sets the state of a task whose pod ends with its job or is replaced. `disruption` is the
  // cluster's reason, or "".
  void Ending(TaskRecord& task, const std::string& disruption) {
    if (IsFinal(change_.job.state)) {
      task.state = TaskState::kStopped;
      task.reason = "ended with the job";
      if (!task.finished) task.finished = sight_.now;
    } else {
      task.exit_code.reset();
      task.finished.reset();
      const bool ends =
          k8s::IsBeingDeleted(*sight_.job) || change_.job.state == JobState::kSuspended;
      if (!ends && task.state != TaskState::kPending) task.state = TaskState::kRestarting;
      task.reason = "its pod is being deleted";
      if (!disruption.empty()) task.reason = Printable(absl::StrCat(task.reason, ": ", disruption));
    }
  }

  static std::string WhyFailed(const Json& pod, const manifest::ContainerStatus& container) {
    const std::string of_pod = k8s::TextAt(pod, "/status/reason");
    if (!of_pod.empty()) return of_pod;
    if (container.reason == "OOMKilled") return "out of memory";
    if (container.exit_code) return ExitStatus::Exited(*container.exit_code).Describe();
    return container.reason;
  }

  void TellOf(const TaskRecord& before, const TaskRecord& after) {
    const std::string why = after.reason.empty() ? "" : absl::StrCat(": ", after.reason);
    const std::string name = after.id.ToString();
    switch (after.state) {
      case TaskState::kRunning:
        Tell("task", name, absl::StrCat("running on ", after.host));
        break;
      case TaskState::kSucceeded:
        Tell("task", name, "succeeded");
        break;
      case TaskState::kFailed:
        Tell("task", name, absl::StrCat("failed", why));
        break;
      case TaskState::kRestarting:
        Tell("restart", name, absl::StrCat("restarts", why));
        break;
      default:
        if (before.state == TaskState::kFailed && !IsFinal(after.state)) {
          Tell("restart", name, "has a new pod");
        }
    }
  }

  // The time of the failure is by the clock of the node.
  TaskFailure FailureOf(const TaskRecord& task) const {
    TaskFailure failure{.task = task.id,
                        .attempt = task.attempt,
                        .time = task.finished.value_or(sight_.now),
                        .exit_code = task.exit_code,
                        .cause = task.reason};
    failure.last_lines = known_.last_lines(task.id);
    if (task.exit_code) {
      const AttemptEnd end = ExplainExit(
          ExitStatus::Exited(*task.exit_code),
          {.last_lines = failure.last_lines, .oom_killed = task.reason == "out of memory"});
      failure.cause = end.reason;
      failure.advice = end.advice;
    }
    return failure;
  }

  const Sight& sight_;
  Json status_ = Json::object();  // of the TFJob
  std::string refused_;           // why pods cannot be created; "" if they can
  std::map<TaskId, const Json*> pods_;
};

}  // namespace

std::optional<JobState> VerdictOf(const Json& job) {
  if (FindCondition(job, "Succeeded") != nullptr) return JobState::kSucceeded;
  if (FindCondition(job, "Failed") != nullptr) return JobState::kFailed;
  return std::nullopt;
}

absl::Duration FinishGrace(const JobSpec& spec) {
  return spec.format == JobFormat::kNative ? spec.policies.finish_grace : absl::ZeroDuration();
}

bool IsAtWork(const Json& pod) { return manifest::TaskOf(pod) && manifest::StatusOf(pod).running; }

JobRecord RecordOf(const Json& job, absl::Time now) {
  JobRecord record{.id = k8s::NameOf(job), .name = k8s::NameOf(job), .platform = "kubernetes"};
  record.created = k8s::TimeAt(job, "/metadata/creationTimestamp").value_or(now);
  const Submission submission{.id = record.id};
  const std::vector<TaskRecord> tasks;
  const auto none = [](const TaskId&) { return std::vector<std::string>(); };
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

std::optional<StateChange> Compare(const Known& known, const Sight& sight) {
  if (IsFinal(known.job.state)) return std::nullopt;
  return PodObserver(known, sight).Run();
}

}  // namespace muster::kubernetes
