// job.json in a job's folder: enough of a job to know it again when the history is lost.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "job/event_sink.h"

namespace muster {

inline constexpr char kJobFolderFile[] = "job.json";

// What never changes while a job lives: id, name, platform, created (to the millisecond),
// directory, model_dir, resumed_from, tasks. The other fields of a record read back are defaults.
std::string JobFolderRecordToJson(const JobRecord& job);
absl::StatusOr<JobRecord> JobFolderRecordFromJson(absl::string_view json);

// The jobs in <home>/jobs/<id>/job.json, oldest first. Folders without a readable one are passed
// over.
std::vector<JobRecord> ReadJobFolders(const std::string& home);

}  // namespace muster
