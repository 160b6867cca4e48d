// A version of the working directory of a job: which files it had, with their hashes, and copies of
// those that make up the user's program. A job keeps the version that it was started with, so that
// a later edit is noticed, shown, and does not reach a task that restarts by policy.
//
// A folder of versions has, for each one, a folder named after its id:
//
//   <id>/files.json   the listing
//   <id>/files/…      the copies, private and read-only; hard links into `store`
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worktree/worktree.h"

namespace muster::worktree {

struct Version {
  std::vector<WorkFile> files;  // sorted by path, hashed

  // Returns the id: a hash of names, modes and contents. "" if there are no files.
  std::string Id() const;
  // Returns the id of the files at or below one of the absolute `paths`. "" if there are none.
  std::string IdBelow(const std::string& root, const std::vector<std::string>& paths) const;
};

struct FileChange {
  enum class Kind { kAdded, kChanged, kRemoved };
  Kind kind;
  std::string path;
  bool operator==(const FileChange&) const = default;
};

// Returns the difference, sorted by path. A change of the mode alone counts.
std::vector<FileChange> Compare(const Version& before, const Version& after);

// Saves and restores versions. Stateless: any number of objects and processes may use the folders,
// but only one at a time saves to `folder`.
class VersionStore {
 public:
  // `folder` holds the versions of one job. It need not exist.
  explicit VersionStore(std::string folder) : folder_(std::move(folder)) {}

  // Saves a version of `root`: the listing, and copies of the program's files. Copies with the same
  // content share one file in `store`. Returns Aborted if a file has changed since it was hashed.
  absl::Status Save(const std::string& root, const Version& version,
                    const std::string& store) const;
  // Returns NotFound if the version was not saved, DataLoss if its listing is damaged.
  absl::StatusOr<Version> Load(const std::string& id) const;
  // Returns the content of a program's file in the version, or NotFound.
  absl::StatusOr<std::string> Read(const std::string& id, const std::string& path) const;
  // Removes all versions except `id`. Best effort.
  void KeepOnly(const std::string& id) const;

  // Makes the folder `view` look like `root` did in the version: the program's files are those of
  // the version, and everything else is a link to `root`. Files of the program that were added
  // since are left out. Files that `view` already has are kept, so that tasks may run in it.
  absl::Status MakeView(const std::string& id, const std::string& root,
                        const std::string& view) const;

 private:
  std::string FolderOf(const std::string& id) const;

  const std::string folder_;
};

// Returns the first file of the version that `root` no longer has with the same content and mode,
// or "". Does not look for files that were added. Reads only files whose times differ.
std::string FirstChange(const std::string& root, const Version& version);

// Removes the contents in `store` that no version refers to. Best effort.
void RemoveUnused(const std::string& store);

}  // namespace muster::worktree
