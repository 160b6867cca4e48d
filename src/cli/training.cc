#include "cli/training.h"

#include <cmath>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "base/terminal_text.h"
#include "checkpoint/format.h"
#include "checkpoint/remote.h"
#include "checkpoint/store.h"
#include "cli/untrusted_file.h"
#include "nlohmann/json.hpp"
#include "storage/url.h"
#include "supervise/job_dir.h"

namespace muster::cli {
namespace {

constexpr int kNameWidth = 40;
constexpr char kLatestEvaluation[] = "eval/latest.json";  // in the model dir
constexpr int64_t kMaxEvaluationBytes = 64 << 10;

// Returns a string of an untrusted file, made safe and short for a terminal.
std::string Word(const nlohmann::json& json) {
  return Ellipsize(Printable(json.get<std::string>(), Colours::kNone), kNameWidth);
}

// Lists the checkpoints of a model dir, a path or a URL.
absl::StatusOr<std::vector<checkpoint::Entry>> EntriesOf(const std::string& model_dir) {
  if (!storage::IsRemote(model_dir)) return checkpoint::List(model_dir);
  MUSTER_ASSIGN_OR_RETURN(const storage::Url url, storage::ParseUrl(model_dir));
  storage::Storage storage;
  return checkpoint::RemoteStore(storage, url).List();
}

std::optional<std::string> ReadLatestEvaluation(const std::string& model_dir) {
  if (!storage::IsRemote(model_dir)) {
    return ReadUntrustedFile(JoinPath(model_dir, kLatestEvaluation));
  }
  const auto url = storage::ParseUrl(model_dir);
  storage::Storage storage;
  if (!url.ok()) return std::nullopt;
  const auto files = storage.For(*url);
  if (!files.ok()) return std::nullopt;
  auto text = ReadWhole(**files, url->Child(kLatestEvaluation), kMaxEvaluationBytes);
  if (!text.ok()) return std::nullopt;
  return *std::move(text);
}

// Returns the id of the job that saved a checkpoint, or "" if unknown.
std::string SaverOf(const std::string& model_dir, const checkpoint::Entry& entry) {
  if (!storage::IsRemote(model_dir)) {
    const auto text = ReadUntrustedFile(JoinPath(entry.folder, checkpoint::kStateFile));
    const auto state = ParseJson(text.value_or(""));
    return state.is_object() ? checkpoint::JobOf(state) : "";
  }
  const auto url = storage::ParseUrl(model_dir);
  if (!url.ok()) return "";
  storage::Storage storage;
  const auto state = checkpoint::RemoteStore(storage, *url).ReadState(entry.step);
  return state.ok() ? checkpoint::JobOf(*state) : "";
}

// Returns whether a result of the job `maker` ("" = unknown) may be shown for `job`. A failed job
// must not be credited with the results of an earlier run.
bool MayShow(const JobRecord& job, const std::string& maker) {
  return maker == job.id || job.state != JobState::kFailed;
}

// Returns ", of JOB" if another job made the result, else "".
std::string OfAnother(const JobRecord& job, const std::string& maker) {
  if (maker.empty() || maker == job.id) return "";
  return absl::StrCat(", of ", Word(maker));
}

std::string CheckpointLines(const JobRecord& job) {
  std::optional<checkpoint::Entry> latest;
  const auto entries = EntriesOf(job.model_dir);
  if (!entries.ok()) return "";
  for (const checkpoint::Entry& entry : *entries) {
    if (entry.status.ok()) latest = entry;
  }
  if (!latest.has_value()) return "";
  const std::string maker = SaverOf(job.model_dir, *latest);
  if (!MayShow(job, maker)) return "";
  const std::string another = OfAnother(job, maker);
  const bool idle = job.state == JobState::kSucceeded && !another.empty();
  return absl::StrCat(
      idle ? absl::StrCat("  nothing was trained: step ", latest->step, " was reached before\n")
           : "",
      "  checkpoints: ", JoinPath(job.model_dir, checkpoint::kFolder), " (latest step ",
      latest->step, another, ")\n");
}

// Formats the first, most important metric of eval/latest.json:
// {"step": 2000, "name": "MNIST", "job": "mnist-x7k2q", "metrics": [["accuracy", 0.9912], …]}
std::string EvaluationLine(const JobRecord& job) {
  const auto text = ReadLatestEvaluation(job.model_dir);
  if (!text.has_value()) return "";
  const auto json = ParseJson(*text);
  if (!json.is_object()) return "";
  const auto metrics = json.find("metrics");
  if (metrics == json.end() || !metrics->is_array() || metrics->empty()) return "";
  const nlohmann::json& first = metrics->front();
  if (!first.is_array() || first.size() != 2 || !first[0].is_string() || !first[1].is_number()) {
    return "";
  }
  const std::string maker = checkpoint::JobOf(json);
  if (!MayShow(job, maker)) return "";
  const auto value = first[1].get<double>();
  const auto name = json.find("name");
  const bool named = name != json.end() && name->is_string();
  std::string line = absl::StrCat(
      "  ", named ? Word(*name) : job.name, " ", Word(first[0]), ": ",
      std::abs(value) < 1e9 ? absl::StrFormat("%.4f", value) : absl::StrFormat("%.4g", value));
  const auto step = json.find("step");
  if (step != json.end() && step->is_number_unsigned()) {
    absl::StrAppend(&line, " (step ", step->get<uint64_t>(), OfAnother(job, maker), ")");
  }
  return absl::StrCat(line, "\n");
}

}  // namespace

absl::StatusOr<Submission> TrainSubmission(const JobRecord& job) {
  MUSTER_ASSIGN_OR_RETURN(Submission submission, JobDir(job.directory).LoadSubmission());
  if (!submission.spec.train.is_null()) return submission;
  return absl::FailedPreconditionError(
      absl::StrCat(job.id,
                   " has no `train` section: its tasks ran programs of their own, and only "
                   "a model of the built-in trainer can be used here"));
}

std::string TrainingResult(const JobRecord& job) {
  if (job.model_dir.empty() || !TrainSubmission(job).ok()) return "";
  // The job may have failed because of the storage; do not wait for that again.
  if (storage::IsRemote(job.model_dir) && job.state != JobState::kSucceeded) return "";
  return absl::StrCat(CheckpointLines(job), EvaluationLine(job));
}

absl::Status CheckCheckpoint(const std::string& model_dir, int64_t step) {
  std::vector<std::string> usable;
  std::string unusable;
  MUSTER_ASSIGN_OR_RETURN(const auto entries, EntriesOf(model_dir));
  for (const checkpoint::Entry& entry : entries) {
    if (entry.status.ok()) {
      if (entry.step == step) return absl::OkStatus();
      usable.push_back(absl::StrCat(entry.step));
    } else if (entry.step == step) {
      unusable = absl::StrCat(" that can be used (", entry.status.message(), ")");
    }
  }
  return absl::NotFoundError(absl::StrCat(
      model_dir, " has no checkpoint of step ", step, unusable, "; there ",
      usable.empty()
          ? "are none"
          : absl::StrCat(usable.size() == 1 ? "is only " : "are ", absl::StrJoin(usable, ", "))));
}

}  // namespace muster::cli
