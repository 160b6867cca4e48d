// What users write about jobs: a note, tags, and whether a run is hidden. Stored in
// <home>/notes.json, apart from the history, which a platform or a rebuild may write anew.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace muster::jobs {

struct Notes {
  std::string note;
  std::vector<std::string> tags;
  bool hidden = false;

  bool empty() const { return note.empty() && tags.empty() && !hidden; }
  bool operator==(const Notes&) const = default;
};

nlohmann::json NotesToJson(const Notes& notes);
// Returns InvalidArgument unless `json` has a "note", "tags" and "hidden" of acceptable size, and
// nothing else. Removes duplicate tags.
absl::StatusOr<Notes> NotesFromJson(const nlohmann::json& json);

// Returns the notes of all jobs that have any, by job id. Skips damaged entries.
std::map<std::string, Notes> ReadNotes(const std::string& home);
// Returns the notes of a job, which are empty if it has none.
Notes NotesOf(const std::map<std::string, Notes>& all, const std::string& job_id);
// Replaces the notes of a job; empty notes remove its entry. Concurrent calls, of other processes
// too, are serialized. Returns DataLoss, and changes nothing, if the file is damaged.
absl::Status WriteNotes(const std::string& home, const std::string& job_id, const Notes& notes);

}  // namespace muster::jobs
