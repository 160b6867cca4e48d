// job.json in a job's folder: enough of a job to recover it when the history is lost.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "job/event_sink.h"

namespace muster::history {

inline constexpr char kJobFolderFile[] = "job.json";

// A job as recorded in its folder. Before the job ends, the record has only the fields that never
// change: id, name, platform, created (to the millisecond), directory, model_dir, resumed_from and
// the ids of the tasks. After its end it also has the state of the job and of each task.
struct JobFolder {
  job::JobRecord job;
  std::vector<job::TaskRecord> tasks;
};

std::string JobFolderToJson(const job::JobRecord& job, const std::vector<job::TaskRecord>& tasks);
// Returns InvalidArgument, with the key, if the text is not a valid record.
absl::StatusOr<JobFolder> JobFolderFromJson(absl::string_view json);

// Returns the jobs in <home>/jobs/<id>/job.json, oldest first. Skips folders without a valid file.
std::vector<JobFolder> ReadJobFolders(const std::string& home);

}  // namespace muster::history
