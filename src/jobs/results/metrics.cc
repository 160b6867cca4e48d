#include "jobs/results/metrics.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files/files.h"
#include "base/files/regular_file.h"
#include "base/files/temporary_folder.h"
#include "base/status_macros.h"
#include "checkpoint/format.h"
#include "job/job_spec.h"
#include "metrics/line_parser.h"
#include "storage/copy.h"
#include "storage/url.h"
#include "summary/folder.h"
#include "supervise/job_dir.h"
#include "supervise/log/log_reader.h"

namespace muster::jobs {
namespace {

constexpr int kMaxDepth = 4;          // of folders with event files
constexpr size_t kMaxFolders = 1000;  // likewise
constexpr int64_t kMaxRemoteBytes = int64_t{1} << 30;
constexpr int64_t kMaxMetricsFile = 256 << 20;
constexpr absl::string_view kEventFile = ".tfevents.";

// Adds the metrics that `more` has and `series` has not.
void Merge(metrics::Series&& more, metrics::Series& series) { series.merge(more); }

// Returns the folders below `root` that contain event files, as paths relative to it; "" = itself.
std::vector<std::string> FoldersWithEvents(const std::string& root) {
  namespace fs = std::filesystem;
  std::vector<std::string> folders;
  std::error_code error;
  fs::recursive_directory_iterator entry(root, fs::directory_options::skip_permission_denied,
                                         error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (entry.depth() >= kMaxDepth) entry.disable_recursion_pending();
    if (!absl::StrContains(entry->path().filename().string(), kEventFile)) continue;
    const std::string folder = entry->path().parent_path().lexically_relative(root).string();
    folders.push_back(folder == "." ? "" : folder);
  }
  std::sort(folders.begin(), folders.end());
  folders.erase(std::unique(folders.begin(), folders.end()), folders.end());
  if (folders.size() > kMaxFolders) folders.resize(kMaxFolders);
  return folders;
}

// A run that was moved aside keeps the names of its metrics.
std::string WithoutSuperseded(absl::string_view folder) {
  if (!absl::StartsWith(folder, checkpoint::kSupersededPrefix)) return std::string(folder);
  const size_t slash = folder.find('/');
  return slash == absl::string_view::npos ? "" : std::string(folder.substr(slash + 1));
}

// Other runs may have written to the same folder before and after this job, so times decide.
void ReadEventFiles(const std::string& root, const job::JobRecord& job, JobMetrics& result) {
  for (const std::string& path : FoldersWithEvents(root)) {
    const std::string folder = WithoutSuperseded(path);
    const auto run = summary::ReadRun(base::JoinPath(root, path), job.created,
                                      job.finished.value_or(absl::InfiniteFuture()));
    if (!run.ok()) {
      result.problems.emplace_back(run.status().message());
      continue;
    }
    for (const absl::Status& problem : run->problems) {
      result.problems.emplace_back(problem.message());
    }
    metrics::Series series;
    for (const auto& [tag, points] : run->run.scalars) {
      const std::string name = folder.empty() ? tag : absl::StrCat(folder, "/", tag);
      for (const auto& point : points) {
        metrics::AddPoint(series, name, {point.step, point.time, point.value});
      }
    }
    Merge(std::move(series), result.series);
  }
}

// Copies the event files of a remote model dir to this machine and reads them.
absl::Status ReadRemoteEventFiles(const job::JobRecord& job, JobMetrics& result) {
  MUSTER_ASSIGN_OR_RETURN(const storage::Url url, storage::ParseUrl(job.model_dir));
  const storage::Url folder = url.AsFolder();
  storage::Storage storage;
  MUSTER_ASSIGN_OR_RETURN(storage::FileSystem * files, storage.For(folder));
  MUSTER_ASSIGN_OR_RETURN(auto found, files->List(folder, storage::Depth::kAll));
  MUSTER_ASSIGN_OR_RETURN(const auto scratch, base::TemporaryFolder::Create());
  std::vector<storage::CopyPair> pairs;
  int64_t bytes = 0;
  for (storage::FileInfo& file : found) {
    const std::string name = file.url.name.substr(folder.name.size());
    if (!absl::StrContains(file.url.Basename(), kEventFile) || !storage::StaysBelow(name)) continue;
    bytes += file.bytes;
    storage::Url to = storage::LocalUrl(scratch.File(name));
    pairs.push_back({.from = std::move(file), .to = std::move(to)});
  }
  if (bytes > kMaxRemoteBytes) {
    return absl::ResourceExhaustedError(
        "more than 1 GiB of event files; copy them with `muster storage cp -r` and use "
        "TensorBoard");
  }
  MUSTER_RETURN_IF_ERROR(storage::CopyFiles(storage, pairs));
  ReadEventFiles(scratch.path(), job, result);
  return absl::OkStatus();
}

void AddMeasurement(const metrics::Measurement& measurement, absl::Time time,
                    metrics::Series& series) {
  for (const auto& [name, value] : measurement.values) {
    metrics::AddPoint(series, name, {measurement.step, measurement.time.value_or(time), value});
  }
}

// While the task may be writing (`growing`), bytes after the last line end are left for the next
// time.
void ReadMetricsFile(const std::string& path, bool growing, JobMetrics& result) {
  const auto text = base::ReadRegularFile(path, kMaxMetricsFile);
  if (absl::IsNotFound(text.status())) return;
  if (!text.ok()) {
    result.problems.emplace_back(text.status().message());
    return;
  }
  metrics::Series series;
  absl::string_view lines = *text;
  if (growing) lines = lines.substr(0, lines.rfind('\n') + 1);
  for (const absl::string_view line : absl::StrSplit(lines, '\n')) {
    if (const auto measurement = metrics::ParseMetricsLine(line)) {
      AddMeasurement(*measurement, absl::InfinitePast(), series);
    }
  }
  Merge(std::move(series), result.series);
}

metrics::Series ReadOutput(const std::string& logs, const cluster::TaskId& task) {
  metrics::Series series;
  metrics::OutputParser parser;
  supervise::LogReader reader(logs, task);
  while (const auto line = reader.Next()) {
    if (const auto found = parser.Parse(line->text)) AddMeasurement(*found, line->time, series);
  }
  return series;
}

}  // namespace

absl::StatusOr<JobMetrics> ReadMetrics(Service& service, const job::JobRecord& job) {
  JobMetrics result;
  if (storage::IsRemote(job.model_dir)) {
    const absl::Status read = ReadRemoteEventFiles(job, result);
    if (!read.ok()) {
      result.problems.push_back(
          absl::StrCat("event files of ", job.model_dir, ": ", read.message()));
    }
  } else if (!job.model_dir.empty()) {
    ReadEventFiles(job.model_dir, job, result);
  }
  MUSTER_ASSIGN_OR_RETURN(history::History * history, service.history());
  MUSTER_ASSIGN_OR_RETURN(std::vector<job::TaskRecord> tasks, history->Tasks(job.id));
  std::erase_if(tasks, [](const job::TaskRecord& task) { return task.id.role == "ps"; });
  std::stable_partition(tasks.begin(), tasks.end(),
                        [](const job::TaskRecord& task) { return job::IsChiefRole(task.id.role); });
  const supervise::JobDir dir(job.directory);
  for (const job::TaskRecord& task : tasks) {
    ReadMetricsFile(dir.metrics(task.id), !job::IsFinal(job.state), result);
  }
  // Programs print the same values under other names, so output counts only without the others.
  if (!result.series.empty()) return result;
  for (const job::TaskRecord& task : tasks) {
    Merge(ReadOutput(dir.logs(), task.id), result.series);
  }
  return result;
}

}  // namespace muster::jobs
