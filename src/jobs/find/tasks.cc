#include "jobs/find/tasks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/bytes/digest.h"
#include "base/status_macros.h"
#include "base/text/suggest.h"
#include "base/text/terminal_text.h"
#include "cluster/address.h"

namespace muster::jobs {
namespace {

constexpr size_t kIdDigits = 8;
constexpr size_t kMaxCandidates = 10;

bool MayBeTaskId(absl::string_view word) {
  return !word.empty() && word.size() <= kIdDigits &&
         std::all_of(word.begin(), word.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

absl::Status Ambiguous(absl::string_view word, const std::vector<std::string>& candidates) {
  std::string message =
      absl::StrCat("'", word, "' is ambiguous; it matches ", candidates.size(), " tasks:");
  for (size_t i = 0; i < std::min(candidates.size(), kMaxCandidates); ++i) {
    absl::StrAppend(&message, "\n  ", candidates[i]);
  }
  if (candidates.size() > kMaxCandidates) {
    absl::StrAppend(&message, "\n  and ", candidates.size() - kMaxCandidates, " more");
  }
  return absl::FailedPreconditionError(message);
}

bool IsAtHost(const job::TaskRecord& task, absl::string_view word) {
  if (task.host == word) return true;
  const auto address = cluster::ParseAddress(task.address);
  if (!address.has_value()) return false;
  if (address->host == word) return true;
  // The first label of an IP address is not a name.
  const std::vector<absl::string_view> labels = absl::StrSplit(address->host, '.');
  return labels.front() == word && !std::all_of(word.begin(), word.end(), absl::ascii_isdigit);
}

// Returns the tasks that `word` denotes, by the rules of SelectTasks(); none if it matches none.
absl::StatusOr<std::vector<cluster::TaskId>> Select(const std::string& job_id,
                                                    const std::vector<job::TaskRecord>& tasks,
                                                    const std::string& word) {
  std::vector<cluster::TaskId> found;
  const auto add = [&](const auto& matches) {
    for (const job::TaskRecord& task : tasks) {
      if (matches(task)) found.push_back(task.id);
    }
    return !found.empty();
  };
  if (word.empty()) return found;
  if (add([&](const auto& task) { return task.id.ToString() == word; })) return found;
  if (add([&](const auto& task) { return task.id.role == word; })) return found;
  if (add([&](const auto& task) { return ShortTaskId(job_id, task.id) == word; })) return found;
  if (add([&](const auto& task) { return IsAtHost(task, word); })) return found;
  if (!MayBeTaskId(word)) return found;
  add([&](const auto& task) { return absl::StartsWith(ShortTaskId(job_id, task.id), word); });
  if (found.size() < 2) return found;
  std::vector<std::string> candidates;
  candidates.reserve(found.size());
  for (const cluster::TaskId& task : found) {
    candidates.push_back(absl::StrCat(ShortTaskId(job_id, task), "  ", task.ToString()));
  }
  return Ambiguous(word, candidates);
}

// Returns the id of the job with the task whose id begins with `prefix`, "" if there is none, or
// FailedPrecondition if there are several.
absl::StatusOr<std::string> JobWithTask(Service& service, const std::string& prefix) {
  if (!MayBeTaskId(prefix)) return "";
  MUSTER_ASSIGN_OR_RETURN(history::History * history, service.history());
  MUSTER_ASSIGN_OR_RETURN(const auto all, history->TaskNames());
  std::string job;
  std::vector<std::string> candidates;
  for (const auto& [job_id, task] : all) {
    const std::string id = ShortTaskId(job_id, task);
    if (!absl::StartsWith(id, prefix)) continue;
    job = job_id;
    candidates.push_back(absl::StrCat(id, "  ", job_id, " ", task.ToString()));
  }
  if (candidates.size() > 1) return Ambiguous(prefix, candidates);
  return job;
}

absl::StatusOr<TaskSelection> SelectIn(Service& service, job::JobRecord job,
                                       const std::vector<std::string>& selectors) {
  MUSTER_ASSIGN_OR_RETURN(history::History * history, service.history());
  MUSTER_ASSIGN_OR_RETURN(auto records, history->Tasks(job.id));
  MUSTER_ASSIGN_OR_RETURN(auto tasks, SelectTasks(job.id, records, selectors));
  return TaskSelection{std::move(job), std::move(records), std::move(tasks), selectors.empty()};
}

// Selects tasks by `words` that do not begin with a job. `unknown` is the error for the first one
// as a job.
absl::StatusOr<TaskSelection> FindWithoutJob(Service& service,
                                             const std::vector<std::string>& words,
                                             const Selection& selection,
                                             const absl::Status& unknown) {
  auto latest = LatestJob(service);
  if (absl::IsNotFound(latest.status())) return unknown;
  MUSTER_RETURN_IF_ERROR(latest.status());
  MUSTER_ASSIGN_OR_RETURN(history::History * history, service.history());
  MUSTER_ASSIGN_OR_RETURN(const auto records, history->Tasks(latest->id));
  MUSTER_ASSIGN_OR_RETURN(const auto here, Select(latest->id, records, words[0]));
  std::string id = latest->id;
  if (here.empty()) {
    MUSTER_ASSIGN_OR_RETURN(id, JobWithTask(service, words[0]));
  }
  if (id.empty()) {
    return absl::NotFoundError(absl::StrCat(unknown.message(), ", nor a task, role, id or host '",
                                            base::Printable(words[0]), "' in the latest job, ",
                                            latest->id));
  }
  MUSTER_ASSIGN_OR_RETURN(job::JobRecord job, FindJob(service, id, selection));
  return SelectIn(service, std::move(job), words);
}

}  // namespace

std::string ShortTaskId(absl::string_view job_id, const cluster::TaskId& task) {
  return base::Sha256Hex(absl::StrCat(job_id, "/", task.ToString())).substr(0, kIdDigits);
}

absl::StatusOr<std::vector<cluster::TaskId>> SelectTasks(
    const std::string& job_id, const std::vector<job::TaskRecord>& tasks,
    const std::vector<std::string>& selectors) {
  std::vector<cluster::TaskId> selected;
  std::vector<std::string> names, words;
  for (const job::TaskRecord& task : tasks) {
    names.push_back(task.id.ToString());
    words.push_back(task.id.role);
    if (!task.host.empty()) words.push_back(task.host);
    if (selectors.empty()) selected.push_back(task.id);
  }
  words.insert(words.end(), names.begin(), names.end());
  for (const std::string& selector : selectors) {
    MUSTER_ASSIGN_OR_RETURN(const auto found, Select(job_id, tasks, selector));
    for (const cluster::TaskId& task : found) {
      if (std::find(selected.begin(), selected.end(), task) == selected.end()) {
        selected.push_back(task);
      }
    }
    if (!found.empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat("no task '", selector, "'",
                                                   base::DidYouMean(selector, words),
                                                   "; the job has ", absl::StrJoin(names, ", ")));
  }
  return selected;
}

absl::StatusOr<TaskSelection> FindTasks(Service& service, const std::vector<std::string>& words,
                                        const Selection& selection) {
  // The id of a task takes precedence over a mere prefix of a job.
  if (words[0].size() == kIdDigits && selection.platform.empty() && !JobNamed(service, words[0])) {
    MUSTER_ASSIGN_OR_RETURN(const std::string id, JobWithTask(service, words[0]));
    if (!id.empty()) {
      MUSTER_ASSIGN_OR_RETURN(job::JobRecord job, FindJob(service, id, selection));
      return SelectIn(service, std::move(job), words);
    }
  }
  auto job = FindJob(service, words[0], selection);
  if (job.ok()) return SelectIn(service, *std::move(job), {words.begin() + 1, words.end()});
  if (!absl::IsNotFound(job.status()) || !selection.platform.empty()) return job.status();
  return FindWithoutJob(service, words, selection, job.status());
}

}  // namespace muster::jobs
