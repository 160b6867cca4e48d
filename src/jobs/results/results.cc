#include "jobs/results/results.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "checkpoint/format.h"
#include "checkpoint/remote.h"
#include "checkpoint/store.h"
#include "jobs/start/untrusted_file.h"
#include "nlohmann/json.hpp"
#include "storage/url.h"
#include "supervise/job_dir.h"

namespace muster::jobs {
namespace {

constexpr char kLatestEvaluation[] = "eval/latest.json";  // in the model dir
constexpr int64_t kMaxEvaluationBytes = 64 << 10;

// Lists the checkpoints of a model dir, a path or a URL.
absl::StatusOr<std::vector<checkpoint::Entry>> EntriesOf(const std::string& model_dir) {
  if (!storage::IsRemote(model_dir)) return checkpoint::List(model_dir);
  MUSTER_ASSIGN_OR_RETURN(const storage::Url url, storage::ParseUrl(model_dir));
  storage::Storage storage;
  return checkpoint::RemoteStore(storage, url).List();
}

absl::StatusOr<checkpoint::Best> BestIn(const std::string& model_dir) {
  if (!storage::IsRemote(model_dir)) return checkpoint::ReadBest(model_dir);
  MUSTER_ASSIGN_OR_RETURN(const storage::Url url, storage::ParseUrl(model_dir));
  storage::Storage storage;
  return checkpoint::RemoteStore(storage, url).ReadBest();
}

std::optional<std::string> ReadLatestEvaluation(const std::string& model_dir) {
  if (!storage::IsRemote(model_dir)) {
    return ReadUntrustedFile(base::JoinPath(model_dir, kLatestEvaluation));
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
    const auto text = ReadUntrustedFile(base::JoinPath(entry.folder, checkpoint::kStateFile));
    const auto state = base::ParseJson(text.value_or(""));
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
bool MayShow(const job::JobRecord& job, const std::string& maker) {
  return maker == job.id || job.state != job::JobState::kFailed;
}

std::optional<LatestCheckpoint> FindLatestCheckpoint(const job::JobRecord& job) {
  std::optional<checkpoint::Entry> latest;
  const auto entries = EntriesOf(job.model_dir);
  if (!entries.ok()) return std::nullopt;
  for (const checkpoint::Entry& entry : *entries) {
    if (entry.status.ok()) latest = entry;
  }
  if (!latest.has_value()) return std::nullopt;
  const std::string maker = SaverOf(job.model_dir, *latest);
  if (!MayShow(job, maker)) return std::nullopt;
  return LatestCheckpoint{.step = latest->step, .made_by = maker};
}

// Reads eval/latest.json:
// {"step": 2000, "name": "MNIST", "job": "mnist-x7k2q", "metrics": [["accuracy", 0.9912], …]}
std::optional<LatestEvaluation> FindLatestEvaluation(const job::JobRecord& job) {
  const auto text = ReadLatestEvaluation(job.model_dir);
  if (!text.has_value()) return std::nullopt;
  const auto json = base::ParseJson(*text);
  if (!json.is_object()) return std::nullopt;
  const auto metrics = json.find("metrics");
  if (metrics == json.end() || !metrics->is_array() || metrics->empty()) return std::nullopt;
  const nlohmann::json& first = metrics->front();
  if (!first.is_array() || first.size() != 2 || !first[0].is_string() || !first[1].is_number()) {
    return std::nullopt;
  }
  LatestEvaluation evaluation{.metric = first[0].get<std::string>(),
                              .value = first[1].get<double>(),
                              .made_by = checkpoint::JobOf(json)};
  if (!MayShow(job, evaluation.made_by)) return std::nullopt;
  const auto name = json.find("name");
  if (name != json.end() && name->is_string()) evaluation.name = name->get<std::string>();
  const auto step = json.find("step");
  if (step != json.end() && step->is_number_unsigned()) evaluation.step = step->get<uint64_t>();
  return evaluation;
}

}  // namespace

absl::StatusOr<job::Submission> TrainSubmission(const job::JobRecord& job) {
  MUSTER_ASSIGN_OR_RETURN(job::Submission submission,
                          supervise::JobDir(job.directory).LoadSubmission());
  if (!submission.spec.train.is_null()) return submission;
  return absl::FailedPreconditionError(absl::StrCat(
      job.id, " has no `train` section; only models of the built-in trainer can be used here"));
}

TrainingResult ReadTrainingResult(const job::JobRecord& job) {
  if (job.model_dir.empty() || !TrainSubmission(job).ok()) return {};
  // The job may have failed because of the storage; do not wait for that again.
  if (storage::IsRemote(job.model_dir) && job.state != job::JobState::kSucceeded) return {};
  return {FindLatestCheckpoint(job), FindLatestEvaluation(job)};
}

absl::StatusOr<std::vector<CheckpointInfo>> ListCheckpoints(const std::string& model_dir) {
  constexpr size_t kMaxSavers = 100;
  MUSTER_ASSIGN_OR_RETURN(const auto entries, EntriesOf(model_dir));
  const auto best = BestIn(model_dir);
  std::vector<CheckpointInfo> result;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (!entry->status.ok()) continue;
    CheckpointInfo info{.step = entry->step, .bytes = entry->bytes, .final = entry->final};
    if (entry->written != absl::InfinitePast()) info.written = entry->written;
    if (result.size() < kMaxSavers) info.made_by = SaverOf(model_dir, *entry);
    if (best.ok() && best->step == entry->step) {
      info.best = true;
      info.metrics.emplace_back(best->metric, best->value);
    }
    result.push_back(std::move(info));
  }
  return result;
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
  return absl::NotFoundError(
      absl::StrCat(model_dir, " has no checkpoint of step ", step, unusable,
                   "; available: ", usable.empty() ? "none" : absl::StrJoin(usable, ", ")));
}

}  // namespace muster::jobs
