#include "jobs/results/notes.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/files/file_lock.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/json.h"

namespace muster::jobs {
namespace {

using nlohmann::json;

constexpr int64_t kMaxNote = 10'000;  // characters
constexpr int64_t kMaxTag = 100;
constexpr size_t kMaxTags = 50;
constexpr absl::Duration kLockTimeout = absl::Seconds(10);

std::string PathIn(const std::string& home) { return base::JoinPath(home, "notes.json"); }

// Returns the number of characters of UTF-8 text: all bytes but those that continue a character.
int64_t Characters(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

// Returns an object with an entry for each job; empty if there is no file.
absl::StatusOr<json> ReadEntries(const std::string& home) {
  const auto text = base::ReadFile(PathIn(home));
  if (absl::IsNotFound(text.status())) return json::object();
  MUSTER_RETURN_IF_ERROR(text.status());
  json entries = base::ParseJson(*text);
  if (entries.is_object()) return entries;
  return absl::DataLossError(
      absl::StrCat(PathIn(home), " is damaged; move it away to write new notes"));
}

}  // namespace

json NotesToJson(const Notes& notes) {
  return {{"note", notes.note}, {"tags", notes.tags}, {"hidden", notes.hidden}};
}

absl::StatusOr<Notes> NotesFromJson(const json& value) {
  const auto invalid = [](const char* what) { return absl::InvalidArgumentError(what); };
  if (!value.is_object() || value.size() != 3 || !value.contains("note") ||
      !value.contains("tags") || !value.contains("hidden")) {
    return invalid("notes are an object with \"note\", \"tags\" and \"hidden\"");
  }
  if (!value["note"].is_string()) return invalid("\"note\" must be a text");
  if (!value["hidden"].is_boolean()) return invalid("\"hidden\" must be true or false");
  if (!value["tags"].is_array() || value["tags"].size() > kMaxTags) {
    return invalid("\"tags\" must be a list of at most 50 texts");
  }
  Notes notes{.note = value["note"].get<std::string>(), .hidden = value["hidden"].get<bool>()};
  if (Characters(notes.note) > kMaxNote)
    return invalid("\"note\" is longer than 10,000 characters");
  for (const json& tag : value["tags"]) {
    const std::string text = tag.is_string() ? tag.get<std::string>() : "";
    if (text.empty() || Characters(text) > kMaxTag) {
      return invalid("a tag must be a text of 1 to 100 characters");
    }
    if (std::find(notes.tags.begin(), notes.tags.end(), text) == notes.tags.end()) {
      notes.tags.push_back(text);
    }
  }
  return notes;
}

std::map<std::string, Notes> ReadNotes(const std::string& home) {
  std::map<std::string, Notes> all;
  const auto entries = ReadEntries(home);
  if (!entries.ok()) return all;
  for (const auto& [id, entry] : entries->items()) {
    if (auto notes = NotesFromJson(entry); notes.ok()) all.emplace(id, *std::move(notes));
  }
  return all;
}

Notes NotesOf(const std::map<std::string, Notes>& all, const std::string& job_id) {
  const auto found = all.find(job_id);
  return found == all.end() ? Notes() : found->second;
}

absl::Status WriteNotes(const std::string& home, const std::string& job_id, const Notes& notes) {
  MUSTER_RETURN_IF_ERROR(base::MakeDirectories(home));
  MUSTER_ASSIGN_OR_RETURN(
      const base::FileLock lock,
      base::FileLock::Acquire(base::JoinPath(home, "notes.lock"), kLockTimeout));
  MUSTER_ASSIGN_OR_RETURN(json entries, ReadEntries(home));
  if (notes.empty()) {
    if (entries.erase(job_id) == 0) return absl::OkStatus();
  } else {
    entries[job_id] = NotesToJson(notes);
  }
  return base::WriteFileAtomically(PathIn(home),
                                   entries.dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace muster::jobs
