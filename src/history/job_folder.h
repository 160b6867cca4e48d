// job.json in a job's folder: enough of a job to know it again when the history is lost.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "job/event_sink.h"

namespace muster {

inline constexpr char kJobFolderFile[] = "job.json";

// A job as its folder tells it. Before the job has ended only what never changes is there: id,
// name, platform, created (to the millisecond), directory, model_dir, resumed_from and which tasks
// it has; from its end on also its state and how each task ended.
struct JobFolder {
  JobRecord job;
  std::vector<TaskRecord> tasks;
};

std::string JobFolderToJson(const JobRecord& job, const std::vector<TaskRecord>& tasks);
absl::StatusOr<JobFolder> JobFolderFromJson(absl::string_view json);

// The jobs in <home>/jobs/<id>/job.json, oldest first. Folders without a readable one are passed
// over.
std::vector<JobFolder> ReadJobFolders(const std::string& home);

}  // namespace muster
