#include "platform/vertex/observe.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/text/json.h"
#include "base/text/terminal_text.h"
#include "job/failure.h"
#include "job/format/parse.h"
#include "platform/vertex/client.h"
#include "platform/vertex/custom_job.h"
#include "platform/vertex/pools.h"
#include "process/exit_status.h"
#include "supervise/exit_cause.h"

namespace muster::vertex {
namespace {

using Json = nlohmann::json;

constexpr std::array<const char*, kPools> kRoles = {"chief", "worker", "ps", "evaluator"};

std::optional<absl::Time> TimeOf(const Json& job, const char* name) {
  absl::Time time;
  const std::string text = base::TextMember(job, name);
  if (text.empty() || !absl::ParseTime(absl::RFC3339_full, text, &time, nullptr)) {
    return std::nullopt;
  }
  return time;
}

struct State {
  absl::string_view name;
  job::JobState ours;
  absl::string_view reason;  // additional explanation, or ""
};

// States that are not listed here lead to no conclusion.
constexpr std::array kStates = {
    State{"JOB_STATE_QUEUED", job::JobState::kPending, "waiting in Vertex AI's queue"},
    State{"JOB_STATE_PENDING", job::JobState::kStarting, "Vertex AI is preparing its machines"},
    State{"JOB_STATE_RUNNING", job::JobState::kRunning, ""},
    State{"JOB_STATE_UPDATING", job::JobState::kRunning, "Vertex AI is updating it"},
    State{"JOB_STATE_PAUSED", job::JobState::kSuspended, ""},
    State{"JOB_STATE_SUCCEEDED", job::JobState::kSucceeded, ""},
    State{"JOB_STATE_PARTIALLY_SUCCEEDED", job::JobState::kSucceeded, "only part of it succeeded"},
    State{"JOB_STATE_FAILED", job::JobState::kFailed, ""},
    State{"JOB_STATE_EXPIRED", job::JobState::kFailed, "deadline exceeded"},
    State{"JOB_STATE_CANCELLED", job::JobState::kStopped, "it was cancelled"},
};

const State* StateOf(const Json& job) {
  const std::string name = base::TextMember(job, "state");
  const auto* found = std::find_if(kStates.begin(), kStates.end(),
                                   [&name](const State& state) { return state.name == name; });
  return found == kStates.end() ? nullptr : found;
}

// Returns the service's message about a failure.
std::string ErrorText(const Json& job) {
  const auto error = job.find("error");
  return error == job.end() ? "" : base::Printable(base::TextMember(*error, "message"));
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

class JobObserver final : public platform::Observer {
 public:
  JobObserver(const platform::KnownJob& known, const Observation& observation)
      : Observer(known, observation.now), observation_(observation) {}

 private:
  bool ReadJob() override {
    if (!observation_.job) return false;
    ReadState(*observation_.job);
    return true;
  }

  void ReadState(const Json& json) {
    job::JobRecord& job = change_.job;
    job.started = TimeOf(json, "startTime");
    const State* state = StateOf(json);
    const std::string name = base::TextMember(json, "state");
    if (state == nullptr) {
      job.reason = name == "JOB_STATE_CANCELLING"
                       ? "it is being cancelled"
                       : absl::StrCat("Vertex AI reports the state ", name);
      return;
    }
    job.reason = std::string(state->reason);
    if (state->ours == job::JobState::kRunning && job.state != job::JobState::kRunning) {
      RecordEvent("job", "", "Running");
    }
    job.state = state->ours;
    if (!job::IsFinal(job.state)) return;
    job.finished = TimeOf(json, "endTime").value_or(observation_.now);
    if (job.state != job::JobState::kFailed) return;
    if (const std::string error = ErrorText(json); !error.empty()) job.reason = error;
    culprit_ = CulpritOf(job.reason);
  }

  void ReadTasks() override {
    const auto pools = PoolsOf(known_.submission.spec);
    if (pools.ok()) {
      leading_ = pools->front().front();
      if (culprit_) failed_ = FindTask(*pools, culprit_->name);
    }
    for (const cluster::TaskId& id : known_.submission.spec.Tasks()) {
      const job::TaskRecord before = KnownTask(id);
      job::TaskRecord after = before;
      const job::RoleSpec& role = *known_.submission.spec.FindRole(id.role);
      after.command = role.command.empty() ? "muster-trainer" : base::ShellJoin(role.command);
      if (pools.ok()) after.host = ReplicaName(*pools, id);
      ReadTask(after);
      if (after.state == job::TaskState::kFailed && before.state != after.state) {
        RecordEvent("task", id.ToString(), absl::StrCat("failed: ", after.reason));
      }
      SetTask(after);
    }
  }

  // Vertex AI reports the state of jobs but not of tasks, so a task has the state of its job.
  void ReadTask(job::TaskRecord& task) const {
    const job::JobRecord& job = change_.job;
    if (job::IsFinal(task.state)) return;
    task.started = job.started;
    task.reason.clear();
    switch (job.state) {
      case job::JobState::kRunning:
        task.state = job::TaskState::kRunning;
        return;
      case job::JobState::kStarting:
        task.state = job::TaskState::kStarting;
        return;
      case job::JobState::kSucceeded:
      case job::JobState::kFailed:
      case job::JobState::kStopped:
        break;
      default:
        return;
    }
    task.finished = job.finished;
    if (job.state == job::JobState::kSucceeded && task.id == leading_) {
      task.state = job::TaskState::kSucceeded;
      task.exit_code = 0;
    } else if (job.state == job::JobState::kFailed && task.id == failed_) {
      task.state = job::TaskState::kFailed;
      task.exit_code = culprit_->exit_code;
      task.reason =
          task.exit_code ? process::ExitStatus::Exited(*task.exit_code).Describe() : job.reason;
    } else {
      task.state = job::TaskState::kStopped;
      task.reason = "ended with the job";
    }
  }

  job::TaskFailure FailureOf(const job::TaskRecord& task) const override {
    job::TaskFailure failure{.task = task.id,
                             .time = task.finished.value_or(observation_.now),
                             .exit_code = task.exit_code,
                             .cause = task.reason,
                             .last_lines = known_.last_lines(task.id)};
    if (task.exit_code) {
      const supervise::AttemptEnd end = supervise::ExplainExit(
          process::ExitStatus::Exited(*task.exit_code), {.last_lines = failure.last_lines});
      failure.cause = end.reason;
      failure.advice = end.advice;
    }
    return failure;
  }

  const Observation& observation_;
  std::optional<cluster::TaskId> leading_;
  std::optional<Culprit> culprit_;
  std::optional<cluster::TaskId> failed_;
};

// Parses a count, which may be a JSON string.
int ReplicasOf(const Json& pool) {
  const auto count = pool.find("replicaCount");
  int replicas = 1;
  if (count == pool.end()) return replicas;
  if (count->is_string() && !absl::SimpleAtoi(count->get<std::string>(), &replicas)) return 1;
  if (count->is_number_integer()) replicas = count->get<int>();
  return std::clamp(replicas, 1, job::kMaxReplicas);
}

}  // namespace

std::optional<absl::Time> EndOf(const Json& job, absl::Time now) {
  const State* state = StateOf(job);
  if (state == nullptr || !job::IsFinal(state->ours)) return std::nullopt;
  return TimeOf(job, "endTime").value_or(now);
}

job::JobSpec SpecOf(const Json& job) {
  job::JobSpec spec{.name = base::TextMember(job, "displayName")};
  const auto pools = job.find("jobSpec");
  if (pools == job.end() || !pools->is_object() || !pools->contains("workerPoolSpecs")) return spec;
  const Json& list = (*pools)["workerPoolSpecs"];
  for (size_t i = 0; list.is_array() && i < std::min<size_t>(list.size(), kPools); ++i) {
    if (!list[i].is_object() || list[i].empty()) continue;
    job::RoleSpec role{.name = kRoles.at(i), .replicas = i == 0 ? 1 : ReplicasOf(list[i])};
    const auto container = list[i].find("containerSpec");
    if (container != list[i].end() && container->is_object()) {
      role.image = base::TextMember(*container, "imageUri");
      role.command = base::TextListMember(*container, "command");
      for (std::string& word : base::TextListMember(*container, "args")) {
        role.command.push_back(std::move(word));
      }
    }
    if (role.command.empty()) role.command = {"(the image's own)"};
    spec.roles.push_back(std::move(role));
  }
  return spec;
}

job::JobRecord RecordOf(const Json& job, absl::Time now) {
  std::string id = LabelOf(job, kJobLabel);
  if (id.empty()) id = std::string(JobNumber(base::TextMember(job, "name")));
  job::JobRecord record{
      .id = id, .name = base::TextMember(job, "displayName"), .platform = "vertex"};
  record.created = TimeOf(job, "createTime").value_or(now);
  const job::Submission submission{.id = id, .spec = SpecOf(job)};
  const std::vector<job::TaskRecord> tasks;
  const auto none = [](const cluster::TaskId&) { return std::vector<std::string>(); };
  const auto change = Compare({record, tasks, submission, none}, {.job = job, .now = now});
  if (change) record = change->job;
  record.failure.clear();
  return record;
}

std::optional<job::StateChange> Compare(const platform::KnownJob& known,
                                        const Observation& observation) {
  if (job::IsFinal(known.job.state)) return std::nullopt;
  return JobObserver(known, observation).Run("it was deleted from Vertex AI");
}

}  // namespace muster::vertex
