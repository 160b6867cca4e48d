// The working directory of a job as it is sent to other machines: which files, and what they hold.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace muster {

struct WorkFile {
  std::string path;         // relative to the root, with '/' between
  int64_t size = 0;         // 0 for a link
  uint32_t mode = 0644;     // 0755 when its owner may execute it, else 0644
  std::string link_target;  // of a symbolic link; else empty
  int64_t mtime_ns = 0;
  std::string sha256;  // hexadecimal; filled by HashFiles, empty for a link
  // With size and mtime_ns, what tells that a file is still the one that was hashed.
  int64_t ctime_ns = 0;
  uint64_t inode = 0;
  bool settled = false;  // filled by HashFiles: another change would show in its times

  bool is_link() const { return !link_target.empty(); }
};

// Fills size, mode, times and inode of a file or a link.
void TakeStat(const struct stat& info, WorkFile& file);

// What is for this machine alone, though it may lie in the folder: known by what it is, whatever it
// is called there.
struct Withheld {
  std::string home = {};               // Muster's own
  std::vector<std::string> keys = {};  // files by which this user is known to others
  // Receives a line for each key that lies there, and one that names what was left out because its
  // name is that of credentials.
  std::function<void(const std::string&)> notice = nullptr;
};

struct WorkDirLimits {
  int64_t max_bytes = int64_t{2} << 30;
  int64_t max_files = 200'000;
};

// What is to be sent of the folder `root`, sorted by path.
//
// Left out is what git would ignore by the .gitignore files in the folder, beneath it, and above it
// as far as the repository it belongs to; a file that is tracked although a .gitignore names it is
// left out too. So are `.git` and `.ssh` wherever they are, folders without files, and sockets,
// pipes and devices. A repository within has its own rules alone, as in git. git's settings
// (core.excludesFile, .git/info/exclude) are not asked.
//
// Files and folders whose names are those of credentials (kCredentialPatterns) are left out, too,
// unless a .gitignore keeps them by a line without wildcards, such as "!.env".
//
// A symbolic link is sent as a link. One that leads out of the folder, or is absolute, would lead
// elsewhere on another machine: FailedPrecondition, as for a name that is not UTF-8, with the names
// and what to do. ResourceExhausted, with the largest entries, when the limits are passed.
absl::StatusOr<std::vector<WorkFile>> ListWorkDir(const std::string& root,
                                                  const Withheld& withheld = {},
                                                  const WorkDirLimits& limits = {});

// Where HashFiles keeps what it knows of a folder, below Muster's home.
absl::StatusOr<std::string> WorkDirCache(const std::string& home, const std::string& root);

// Fills `sha256` of every file of a listing. Only files that differ from what `cache_path`
// remembers are read (path, size, times and inode), and the cache is written anew; one that is
// damaged counts as empty, one that cannot be written is no error, "" means none. A file that has
// changed since it was listed has its size and times put right; one that does not stop changing is
// Aborted, one that is gone NotFound. Returns how many bytes were read.
absl::StatusOr<int64_t> HashFiles(const std::string& root, std::vector<WorkFile>& files,
                                  const std::string& cache_path, absl::Time now = absl::Now());

// Whether an open file is what HashFiles read, as its times tell; false when they cannot.
bool IsAsHashed(int fd, const WorkFile& file);

}  // namespace muster
