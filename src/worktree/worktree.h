// The working directory of a job as sent to other machines: the list of its files and their hashes.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace muster::worktree {

struct WorkFile {
  std::string path;         // relative to the root, separated by '/'
  int64_t size = 0;         // 0 for a link
  uint32_t mode = 0644;     // 0755 if its owner may execute it, else 0644
  std::string link_target;  // empty unless it is a symbolic link
  int64_t mtime_ns = 0;
  std::string sha256;  // hexadecimal; set by HashFiles, empty for a link
  // Together with size and mtime_ns, these identify the content that was hashed.
  int64_t ctime_ns = 0;
  uint64_t inode = 0;
  bool settled = false;  // set by HashFiles: any later change alters the times

  bool is_link() const { return !link_target.empty(); }
};

// Sets size, mode, times and inode of `file`.
void TakeStat(const struct stat& info, WorkFile& file);

// Files that must not leave this machine. They are identified by device and inode, so they are
// found under any name.
struct Withheld {
  std::string home = {};               // Muster's home folder
  std::vector<std::string> keys = {};  // credential files of this user
  // Called once for each key found in the folder, and once with the names of all entries that are
  // left out because of kCredentialPatterns.
  std::function<void(const std::string&)> notice = nullptr;
};

struct WorkDirLimits {
  int64_t max_bytes = int64_t{2} << 30;
  int64_t max_files = 200'000;
};

// Returns the files of the folder `root` that are to be sent, sorted by path.
//
// Leaves out everything that git ignores by the .gitignore files in the folder, below it, and above
// it up to the top of its repository. A tracked file that a .gitignore matches is left out too. So
// are `.git` and `.ssh` at any depth, empty folders, sockets, pipes and devices. A nested
// repository has only its own rules, as in git. git's settings (core.excludesFile,
// .git/info/exclude) are not read.
//
// Leaves out files and folders that match kCredentialPatterns, unless a .gitignore keeps them by a
// line without wildcards, such as "!.env".
//
// A symbolic link is sent as a link. Returns FailedPrecondition, with the names and the remedy, if
// a link is absolute or leads out of the folder, because it would resolve differently on another
// machine, or if a name is not UTF-8. Returns ResourceExhausted, with the largest entries, if a
// limit is exceeded.
absl::StatusOr<std::vector<WorkFile>> ListWorkDir(const std::string& root,
                                                  const Withheld& withheld = {},
                                                  const WorkDirLimits& limits = {});

// Returns true for a file that people write and programs do not: source code, a script, a
// configuration file, or anything executable. Judged by its name and mode. JSON is not among them,
// because programs store results in it.
bool IsProgramFile(const WorkFile& file);

struct ProgramLimits {
  int64_t max_bytes = int64_t{256} << 20;
  int64_t max_files = 10'000;
  int64_t max_entries = 100'000;  // entries of folders that are looked at
};

// Returns the files of the program in the folder `root` (see IsProgramFile), sorted by path. Leaves
// out what ListWorkDir() leaves out, the folders `except`, installed packages (virtual environments
// and node_modules), other file systems, and whatever cannot be read. Links are not followed.
// Returns ResourceExhausted, with the largest entries, if a limit is exceeded.
absl::StatusOr<std::vector<WorkFile>> ListProgram(const std::string& root,
                                                  const std::vector<std::string>& except,
                                                  const ProgramLimits& limits = {});

// Returns the path of the cache that HashFiles uses for `root`, below Muster's home. Creates its
// folder.
absl::StatusOr<std::string> WorkDirCache(const std::string& home, const std::string& root);

// Sets `sha256` of every file of a listing. Reads only the files whose size, times or inode differ
// from the cache at `cache_path`, then rewrites the cache. A damaged cache counts as empty, a
// failure to write it is ignored, and "" disables it. Updates the size and times of a file that has
// changed since it was listed. Returns the number of bytes read, Aborted if a file keeps changing,
// or NotFound if one no longer exists.
absl::StatusOr<int64_t> HashFiles(const std::string& root, std::vector<WorkFile>& files,
                                  const std::string& cache_path, absl::Time now = absl::Now());

// Returns true if the open file is the one that HashFiles read, by its size, times and inode.
// Returns false if they are not conclusive (see `settled`).
bool IsUnchangedSinceHash(int fd, const WorkFile& file);

}  // namespace muster::worktree
