#include "cli/training.h"

#include <cmath>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/terminal_text.h"
#include "checkpoint/format.h"
#include "checkpoint/remote.h"
#include "checkpoint/store.h"
#include "cli/untrusted_file.h"
#include "launch/job_dir.h"
#include "nlohmann/json.hpp"
#include "storage/url.h"

namespace muster::cli {
namespace {

constexpr int kNameWidth = 40;
constexpr char kLatestEvaluation[] = "eval/latest.json";  // in the model dir
constexpr int64_t kMaxEvaluationBytes = 64 << 10;

// A word of somebody else's file, for a terminal.
std::string Word(const nlohmann::json& json) {
  const std::string text = absl::StrReplaceAll(json.get<std::string>(), {{"\x1b", "?"}});
  return Ellipsize(Printable(text), kNameWidth);
}

// Of a URL, too.
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

std::string CheckpointLine(const std::string& model_dir) {
  std::optional<int64_t> latest;
  const auto entries = EntriesOf(model_dir);
  if (!entries.ok()) return "";
  for (const checkpoint::Entry& entry : *entries) {
    if (entry.status.ok()) latest = entry.step;
  }
  if (!latest.has_value()) return "";
  return absl::StrCat("  checkpoints: ", JoinPath(model_dir, checkpoint::kFolder), " (latest step ",
                      *latest, ")\n");
}

// {"step": 2000, "name": "MNIST", "metrics": [["accuracy", 0.9912], …]}, the most important first.
std::string EvaluationLine(const JobRecord& job) {
  const auto text = ReadLatestEvaluation(job.model_dir);
  if (!text.has_value()) return "";
  const auto json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return "";
  const auto metrics = json.find("metrics");
  if (metrics == json.end() || !metrics->is_array() || metrics->empty()) return "";
  const nlohmann::json& first = metrics->front();
  if (!first.is_array() || first.size() != 2 || !first[0].is_string() || !first[1].is_number()) {
    return "";
  }
  const auto value = first[1].get<double>();
  const auto name = json.find("name");
  const bool named = name != json.end() && name->is_string();
  std::string line = absl::StrCat(
      "  ", named ? Word(*name) : job.name, " ", Word(first[0]), ": ",
      std::abs(value) < 1e9 ? absl::StrFormat("%.4f", value) : absl::StrFormat("%.4g", value));
  const auto step = json.find("step");
  if (step != json.end() && step->is_number_unsigned()) {
    absl::StrAppend(&line, " (step ", step->get<uint64_t>(), ")");
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
  // What failed may be the storage.
  if (storage::IsRemote(job.model_dir) && job.state != JobState::kSucceeded) return "";
  return absl::StrCat(CheckpointLine(job.model_dir), EvaluationLine(job));
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
