// HashFiles and its cache. The cache is a text file:
//
//   muster work-dir 1 <sha256 of the rest>\n
//   <sha256> <size> <mtime_ns> <ctime_ns> <inode> <path>\0 …
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/bytes/digest.h"
#include "base/files/files.h"
#include "base/files/unique_fd.h"
#include "base/status_macros.h"
#include "worktree/worktree.h"

namespace muster::worktree {
namespace {

constexpr absl::string_view kMagic = "muster work-dir 1 ";
constexpr int64_t kMaxCacheBytes = 256 << 20;
constexpr size_t kBufferBytes = 256 << 10;
constexpr int kMaxAttempts = 3;
// A file may change twice within one tick of its file system's clock, which lasts up to two
// seconds. A file that has changed that recently is not cached.
constexpr absl::Duration kTick = absl::Seconds(2);

// Size, mtime, ctime and inode of a file at the time of its hash.
using FileVersion = std::tuple<int64_t, int64_t, int64_t, uint64_t>;
struct Known {
  FileVersion identity;
  std::string sha256;
};
using Cache = std::map<std::string, Known>;

FileVersion FileVersionOf(const WorkFile& file) {
  return {file.size, file.mtime_ns, file.ctime_ns, file.inode};
}

// Returns false if the line is malformed.
bool AddLine(absl::string_view line, Cache& cache) {
  const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(' ', 5));
  int64_t size = 0, mtime = 0, ctime = 0;
  uint64_t inode = 0;
  if (parts.size() != 6 || parts[0].size() != 64 || !absl::SimpleAtoi(parts[1], &size) ||
      !absl::SimpleAtoi(parts[2], &mtime) || !absl::SimpleAtoi(parts[3], &ctime) ||
      !absl::SimpleAtoi(parts[4], &inode)) {
    return false;
  }
  cache[std::string(parts[5])] = {{size, mtime, ctime, inode}, std::string(parts[0])};
  return true;
}

Cache ReadCache(const std::string& path) {
  if (path.empty()) return {};
  const auto content = base::ReadFile(path, kMaxCacheBytes);
  if (!content.ok()) return {};
  absl::string_view rest = *content;
  if (!absl::ConsumePrefix(&rest, kMagic)) return {};
  const size_t end = rest.find('\n');
  if (end == absl::string_view::npos) return {};
  const absl::string_view sum = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  if (base::Sha256Hex(rest) != sum) return {};
  Cache cache;
  for (const absl::string_view line : absl::StrSplit(rest, '\0', absl::SkipEmpty())) {
    if (!AddLine(line, cache)) return {};
  }
  return cache;
}

void WriteCache(const std::string& path, const std::vector<WorkFile>& files) {
  std::string body;
  for (const WorkFile& file : files) {
    if (!file.settled) continue;
    absl::StrAppend(&body, file.sha256, " ", file.size, " ", file.mtime_ns, " ", file.ctime_ns, " ",
                    file.inode, " ", file.path, absl::string_view("\0", 1));
  }
  base::ReplaceFile(path, absl::StrCat(kMagic, base::Sha256Hex(body), "\n", body)).IgnoreError();
}

absl::Status Stat(int fd, const std::string& path, WorkFile& file) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return absl::ErrnoToStatus(errno, path);
  if (!S_ISREG(info.st_mode)) {
    return absl::AbortedError(absl::StrCat(path, " is no longer a file; try again"));
  }
  TakeStat(info, file);
  return absl::OkStatus();
}

// Hashes the file to its end, and adds the number of bytes read to `bytes`.
absl::StatusOr<std::string> HashOf(int fd, const std::string& path, std::string& buffer,
                                   int64_t& bytes) {
  base::Sha256 hash;
  for (;;) {
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n == 0) return hash.Finish();
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::ErrnoToStatus(errno, path);
    hash.Update(absl::string_view(buffer.data(), static_cast<size_t>(n)));
    bytes += n;
  }
}

// Retries until the file's identity is the same before and after the read, so that it belongs to
// the content that was hashed.
absl::Status HashFile(const std::string& path, WorkFile& file, std::string& buffer,
                      int64_t& bytes) {
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    // O_NONBLOCK: a pipe may have replaced the file since it was listed.
    const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd.valid()) {
      return base::Annotate(
          absl::ErrnoToStatus(errno, path),
          "cannot read a file of the job; make it readable, or list it in .gitignore");
    }
    MUSTER_RETURN_IF_ERROR(Stat(fd.get(), path, file));
    const FileVersion before = FileVersionOf(file);
    const int64_t bytes_before = bytes;
    MUSTER_ASSIGN_OR_RETURN(file.sha256, HashOf(fd.get(), path, buffer, bytes));
    MUSTER_RETURN_IF_ERROR(Stat(fd.get(), path, file));
    if (FileVersionOf(file) == before && bytes - bytes_before == file.size) return absl::OkStatus();
  }
  return absl::AbortedError(absl::StrCat(
      path,
      " changed while it was read; stop the program that writes it, or list it in .gitignore"));
}

}  // namespace

absl::StatusOr<std::string> WorkDirCache(const std::string& home, const std::string& root) {
  const std::string folder = base::JoinPath(home, "sent");
  MUSTER_RETURN_IF_ERROR(base::MakeDirectories(folder));
  return base::JoinPath(folder, base::Sha256Hex(root).substr(0, 16));
}

absl::StatusOr<int64_t> HashFiles(const std::string& root, std::vector<WorkFile>& files,
                                  const std::string& cache_path, absl::Time now) {
  const Cache cache = ReadCache(cache_path);
  std::string buffer(kBufferBytes, '\0');
  int64_t bytes = 0;
  bool changed = false;
  size_t kept = 0;
  for (WorkFile& file : files) {
    if (file.is_link()) continue;
    const auto known = cache.find(file.path);
    if (known != cache.end() && known->second.identity == FileVersionOf(file)) {
      file.sha256 = known->second.sha256;
      file.settled = true;
      ++kept;
      continue;
    }
    MUSTER_RETURN_IF_ERROR(HashFile(base::JoinPath(root, file.path), file, buffer, bytes));
    file.settled = std::max(file.mtime_ns, file.ctime_ns) < absl::ToUnixNanos(now - kTick);
    changed = true;
  }
  // kept < cache.size(): the cache has entries of files that no longer exist.
  if (!cache_path.empty() && (changed || kept != cache.size())) WriteCache(cache_path, files);
  return bytes;
}

bool IsUnchangedSinceHash(int fd, const WorkFile& file) {
  WorkFile now;
  return file.settled && Stat(fd, file.path, now).ok() && FileVersionOf(now) == FileVersionOf(file);
}

}  // namespace muster::worktree
