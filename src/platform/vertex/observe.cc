#include "platform/vertex/observe.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/terminal_text.h"
#include "job/failure.h"
#include "job/parse.h"
#include "platform/vertex/client.h"
#include "platform/vertex/custom_job.h"
#include "platform/vertex/pools.h"
#include "process/exit_status.h"
#include "storage/json.h"
#include "supervise/exit_cause.h"

namespace muster::vertex {
namespace {

using Json = nlohmann::json;
using storage::TextMember;

constexpr std::array<const char*, kPools> kRoles = {"chief", "worker", "ps", "evaluator"};

std::optional<absl::Time> TimeOf(const Json& job, const char* name) {
  absl::Time time;
  const std::string text = TextMember(job, name);
  if (text.empty() || !absl::ParseTime(absl::RFC3339_full, text, &time, nullptr)) {
    return std::nullopt;
  }
  return time;
}

struct State {
  absl::string_view name;
  JobState ours;
  absl::string_view reason;  // additional explanation, or ""
};

// States that are not listed here lead to no conclusion.
constexpr std::array kStates = {
    State{"JOB_STATE_QUEUED", JobState::kPending, "it waits in Vertex AI's queue"},
    State{"JOB_STATE_PENDING", JobState::kStarting, "Vertex AI prepares its machines"},
    State{"JOB_STATE_RUNNING", JobState::kRunning, ""},
    State{"JOB_STATE_UPDATING", JobState::kRunning, "Vertex AI changes it"},
    State{"JOB_STATE_PAUSED", JobState::kSuspended, ""},
    State{"JOB_STATE_SUCCEEDED", JobState::kSucceeded, ""},
    State{"JOB_STATE_PARTIALLY_SUCCEEDED", JobState::kSucceeded, "only a part of it succeeded"},
    State{"JOB_STATE_FAILED", JobState::kFailed, ""},
    State{"JOB_STATE_EXPIRED", JobState::kFailed, "it ran longer than its deadline"},
    State{"JOB_STATE_CANCELLED", JobState::kStopped, "it was cancelled"},
};

const State* StateOf(const Json& job) {
  const std::string name = TextMember(job, "state");
  const auto* found = std::find_if(kStates.begin(), kStates.end(),
                                   [&name](const State& state) { return state.name == name; });
  return found == kStates.end() ? nullptr : found;
}

// Returns the service's message about a failure.
std::string ErrorText(const Json& job) {
  const auto error = job.find("error");
  return error == job.end() ? "" : Printable(TextMember(*error, "message"));
}

// Replica and exit code from "The replica workerpool0-0 exited with a non-zero status of 1. …".
struct Culprit {
  std::string name;
  std::optional<int> exit_code;
};

std::optional<Culprit> CulpritOf(absl::string_view text) {
  Culprit culprit;
  const std::vector<absl::string_view> words =
      absl::StrSplit(text, absl::ByAnyChar(" .,:;\n"), absl::SkipEmpty());
  for (size_t i = 0; i < words.size(); ++i) {
    if (culprit.name.empty() && absl::StartsWith(words[i], "workerpool")) {
      culprit.name = std::string(words[i]);
    }
    int code = 0;
    if (i >= 2 && words[i - 2] == "status" && words[i - 1] == "of" &&
        absl::SimpleAtoi(words[i], &code)) {
      culprit.exit_code = code;
    }
  }
  return culprit.name.empty() ? std::nullopt : std::optional<Culprit>(std::move(culprit));
}

class JobObserver : private Observer {
 public:
  JobObserver(const KnownJob& known, const Sight& sight)
      : Observer(known, sight.now), sight_(sight) {}

  std::optional<StateChange> Run() {
    if (sight_.job) {
      ReadJob(*sight_.job);
    } else {
      Vanished("it was deleted from Vertex AI");
    }
    ReadTasks();
    if (change_.job.state == JobState::kFailed) {
      change_.job.failure = Failure([this](const TaskRecord& task) { return FailureOf(task); });
    }
    return Finish();
  }

 private:
  void ReadJob(const Json& json) {
    JobRecord& job = change_.job;
    job.started = TimeOf(json, "startTime");
    const State* state = StateOf(json);
    const std::string name = TextMember(json, "state");
    if (state == nullptr) {
      job.reason = name == "JOB_STATE_CANCELLING" ? "it is being cancelled"
                                                  : absl::StrCat("Vertex AI calls it ", name);
      return;
    }
    job.reason = std::string(state->reason);
    if (state->ours == JobState::kRunning && job.state != JobState::kRunning) {
      Tell("job", "", "Running");
    }
    job.state = state->ours;
    if (!IsFinal(job.state)) return;
    job.finished = TimeOf(json, "endTime").value_or(sight_.now);
    if (job.state != JobState::kFailed) return;
    if (const std::string error = ErrorText(json); !error.empty()) job.reason = error;
    culprit_ = CulpritOf(job.reason);
  }

  void ReadTasks() {
    const auto pools = PoolsOf(known_.submission.spec);
    if (pools.ok()) {
      leading_ = pools->front().front();
      if (culprit_) failed_ = FindTask(*pools, culprit_->name);
    }
    for (const TaskId& id : known_.submission.spec.Tasks()) {
      const TaskRecord before = Before(id);
      TaskRecord after = before;
      const RoleSpec& role = *known_.submission.spec.FindRole(id.role);
      after.command = role.command.empty() ? "muster-trainer" : ShellJoin(role.command);
      ReadTask(after);
      if (after.state == TaskState::kFailed && before.state != after.state) {
        Tell("task", id.ToString(), absl::StrCat("failed: ", after.reason));
      }
      After(after);
    }
  }

  // Vertex AI reports the state of jobs but not of tasks, so a task has the state of its job.
  void ReadTask(TaskRecord& task) const {
    const JobRecord& job = change_.job;
    if (IsFinal(task.state)) return;
    task.started = job.started;
    task.reason.clear();
    switch (job.state) {
      case JobState::kRunning:
        task.state = TaskState::kRunning;
        return;
      case JobState::kStarting:
        task.state = TaskState::kStarting;
        return;
      case JobState::kSucceeded:
      case JobState::kFailed:
      case JobState::kStopped:
        break;
      default:
        return;
    }
    task.finished = job.finished;
    if (job.state == JobState::kSucceeded && task.id == leading_) {
      task.state = TaskState::kSucceeded;
      task.exit_code = 0;
    } else if (job.state == JobState::kFailed && task.id == failed_) {
      task.state = TaskState::kFailed;
      task.exit_code = culprit_->exit_code;
      task.reason = task.exit_code ? ExitStatus::Exited(*task.exit_code).Describe() : job.reason;
    } else {
      task.state = TaskState::kStopped;
      task.reason = "ended with the job";
    }
  }

  TaskFailure FailureOf(const TaskRecord& task) const {
    TaskFailure failure{.task = task.id,
                        .time = task.finished.value_or(sight_.now),
                        .exit_code = task.exit_code,
                        .cause = task.reason,
                        .last_lines = known_.last_lines(task.id)};
    if (task.exit_code) {
      const AttemptEnd end =
          ExplainExit(ExitStatus::Exited(*task.exit_code), {.last_lines = failure.last_lines});
      failure.cause = end.reason;
      failure.advice = end.advice;
    }
    return failure;
  }

  const Sight& sight_;
  std::optional<TaskId> leading_;
  std::optional<Culprit> culprit_;
  std::optional<TaskId> failed_;
};

// Parses a count, which may be a JSON string.
int ReplicasOf(const Json& pool) {
  const auto count = pool.find("replicaCount");
  int replicas = 1;
  if (count == pool.end()) return replicas;
  if (count->is_string() && !absl::SimpleAtoi(count->get<std::string>(), &replicas)) return 1;
  if (count->is_number_integer()) replicas = count->get<int>();
  return std::clamp(replicas, 1, kMaxReplicas);
}

std::vector<std::string> TextsOf(const Json& container, const char* name) {
  std::vector<std::string> texts;
  const auto found = container.find(name);
  if (found == container.end() || !found->is_array()) return texts;
  for (const Json& text : *found) {
    if (text.is_string()) texts.push_back(text.get<std::string>());
  }
  return texts;
}

}  // namespace

std::optional<absl::Time> EndOf(const Json& job, absl::Time now) {
  const State* state = StateOf(job);
  if (state == nullptr || !IsFinal(state->ours)) return std::nullopt;
  return TimeOf(job, "endTime").value_or(now);
}

JobSpec SpecOf(const Json& job) {
  JobSpec spec{.name = TextMember(job, "displayName")};
  const auto pools = job.find("jobSpec");
  if (pools == job.end() || !pools->is_object() || !pools->contains("workerPoolSpecs")) return spec;
  const Json& list = (*pools)["workerPoolSpecs"];
  for (size_t i = 0; list.is_array() && i < std::min<size_t>(list.size(), kPools); ++i) {
    if (!list[i].is_object() || list[i].empty()) continue;
    RoleSpec role{.name = kRoles.at(i), .replicas = i == 0 ? 1 : ReplicasOf(list[i])};
    const auto container = list[i].find("containerSpec");
    if (container != list[i].end() && container->is_object()) {
      role.image = TextMember(*container, "imageUri");
      role.command = TextsOf(*container, "command");
      for (std::string& word : TextsOf(*container, "args")) role.command.push_back(std::move(word));
    }
    if (role.command.empty()) role.command = {"(the image's own)"};
    spec.roles.push_back(std::move(role));
  }
  return spec;
}

JobRecord RecordOf(const Json& job, absl::Time now) {
  std::string id = LabelOf(job, kJobLabel);
  if (id.empty()) id = std::string(JobNumber(TextMember(job, "name")));
  JobRecord record{.id = id, .name = TextMember(job, "displayName"), .platform = "vertex"};
  record.created = TimeOf(job, "createTime").value_or(now);
  const Submission submission{.id = id, .spec = SpecOf(job)};
  const std::vector<TaskRecord> tasks;
  const auto none = [](const TaskId&) { return std::vector<std::string>(); };
  const auto change = Compare({record, tasks, submission, none}, {.job = job, .now = now});
  if (change) record = change->job;
  record.failure.clear();
  return record;
}

std::optional<StateChange> Compare(const KnownJob& known, const Sight& sight) {
  if (IsFinal(known.job.state)) return std::nullopt;
  return JobObserver(known, sight).Run();
}

}  // namespace muster::vertex
