#include "storage/local_copy.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/bytes/digest.h"
#include "base/files/cache_folder.h"
#include "base/files/file_lock.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "base/variables.h"
#include "storage/copy.h"

namespace muster::storage {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kLockTimeout = absl::Hours(24);  // large copies take long
constexpr int kParallel = 8;

// The remote files that a URL names, and the local path that names their copies.
struct Found {
  std::vector<FileInfo> files;
  std::string path;
};

std::string PathOf(const Url& url, const std::string& folder) {
  return base::JoinPath(folder, std::string(absl::StripPrefix(url.name, "/")));
}

// Finds a file of exactly that name, else files that match the pattern, else a folder.
absl::StatusOr<Found> Find(FileSystem& there, const Url& url, const std::string& folder) {
  Found found{.path = PathOf(url, folder)};
  auto info = there.Stat(url);
  if (info.ok()) {
    found.files.push_back(*std::move(info));
    return found;
  }
  // Some servers fail on a name with a *. For a pattern, the listing below reports real errors.
  if (!IsGlob(url) && !absl::IsNotFound(info.status())) return info.status();
  if (IsGlob(url)) {
    MUSTER_ASSIGN_OR_RETURN(found.files, Glob(there, url));
    if (!found.files.empty()) return found;
  }
  auto below = there.List(url.AsFolder(), Depth::kAll);
  if (!below.ok() && !IsGlob(url)) return below.status();
  if (below.ok()) found.files = *std::move(below);
  if (!found.files.empty()) return found;
  return absl::NotFoundError(absl::StrCat(url.ToString(),
                                          IsGlob(url) ? ": no file matches" : ": does not exist",
                                          "; `muster storage ls` lists the files"));
}

absl::Status CheckNames(const Found& found, const std::string& folder) {
  for (const FileInfo& info : found.files) {
    if (StaysBelow(absl::StripPrefix(info.url.name, "/"))) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(info.url.ToString(), ": its name points outside ", folder, "; rename it"));
  }
  return absl::OkStatus();
}

// Some storages report times in seconds: a file replaced within the same second looks unchanged.
constexpr absl::Duration kTimeResolution = absl::Seconds(2);

// A copy made shortly after the original was written does not count: see kTimeResolution.
bool IsCopy(const std::string& path, const FileInfo& info) {
  struct stat here {};
  return ::stat(path.c_str(), &here) == 0 && S_ISREG(here.st_mode) && here.st_size == info.bytes &&
         info.modified != absl::InfinitePast() &&
         absl::TimeFromTimespec(here.st_mtim) == info.modified &&
         absl::TimeFromTimespec(here.st_ctim) > info.modified + kTimeResolution;
}

absl::Status SetTime(const std::string& path, absl::Time time) {
  if (time == absl::InfinitePast()) return absl::OkStatus();
  const timespec times[2] = {absl::ToTimespec(time), absl::ToTimespec(time)};
  if (::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, path);
}

absl::Status CheckSpace(const Url& url, int64_t bytes, const std::string& folder) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (error || static_cast<int64_t>(space.available) >= bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      url.ToString(), ": copying ", base::FormatBytes(bytes), " to ", folder,
      " needs more space than the ", base::FormatBytes(static_cast<int64_t>(space.available)),
      " available; set MUSTER_CACHE to a folder on a larger disk"));
}

// Removes copies that the local path would match but whose original is gone.
absl::Status RemoveStale(Storage& storage, const Url& url, const Found& found,
                         const std::string& folder) {
  std::set<std::string> wanted;
  for (const FileInfo& info : found.files) wanted.insert(PathOf(info.url, folder));
  const Url here = LocalUrl(found.path);
  MUSTER_ASSIGN_OR_RETURN(FileSystem * local, storage.For(here));
  MUSTER_ASSIGN_OR_RETURN(const auto copies, IsGlob(url)
                                                 ? Glob(*local, here)
                                                 : local->List(here.AsFolder(), Depth::kAll));
  for (const FileInfo& info : copies) {
    if (!wanted.contains(info.url.name)) MUSTER_RETURN_IF_ERROR(local->Delete(info.url));
  }
  return absl::OkStatus();
}

// Ensures that one process at a time copies the files of a URL.
absl::StatusOr<base::FileLock> Lock(const Url& url, const std::string& folder,
                                    const std::function<void(const std::string&)>& log) {
  const std::string path =
      absl::StrCat(folder, "-", base::Sha256Hex(url.name).substr(0, 16), ".lock");
  MUSTER_ASSIGN_OR_RETURN(std::optional<base::FileLock> lock, base::FileLock::Try(path));
  if (lock.has_value()) return *std::move(lock);
  log(absl::StrCat("waiting for another process to copy ", url.ToString()));
  return base::FileLock::Acquire(path, kLockTimeout);
}

}  // namespace

std::string CacheFolder() {
  if (const char* own = std::getenv("MUSTER_CACHE"); own != nullptr && *own != '\0') return own;
  return base::UserCacheFolder(base::ProcessVariables());
}

std::string CacheFolderOf(const Url& url, const std::string& cache) {
  return base::JoinPath(base::JoinPath(cache, url.scheme), url.authority);
}

absl::StatusOr<std::string> LocalCopy(Storage& storage, const Url& url, const std::string& cache,
                                      const std::function<void(const std::string&)>& log) {
  const std::string folder = CacheFolderOf(url, cache);
  MUSTER_RETURN_IF_ERROR(base::MakeTrustedFolder(folder));
  MUSTER_ASSIGN_OR_RETURN(const base::FileLock lock, Lock(url, folder, log));
  MUSTER_ASSIGN_OR_RETURN(FileSystem * there, storage.For(url));
  MUSTER_ASSIGN_OR_RETURN(const Found found, Find(*there, url, folder));
  MUSTER_RETURN_IF_ERROR(CheckNames(found, folder));
  MUSTER_RETURN_IF_ERROR(RemoveStale(storage, url, found, folder));
  std::vector<CopyPair> pairs;
  int64_t bytes = 0;
  for (const FileInfo& info : found.files) {
    const std::string path = PathOf(info.url, folder);
    if (IsCopy(path, info)) continue;
    pairs.push_back({info, LocalUrl(path)});
    bytes += info.bytes;
  }
  if (pairs.empty()) return found.path;
  MUSTER_RETURN_IF_ERROR(CheckSpace(url, bytes, folder));
  log(absl::StrCat("copying ", base::Plural(static_cast<int64_t>(pairs.size()), "file"), ", ",
                   base::FormatBytes(bytes), ", of ", url.ToString(), " to ", folder));
  MUSTER_RETURN_IF_ERROR(CopyFiles(storage, pairs, {.parallel = kParallel, .compare = false}));
  for (const CopyPair& pair : pairs) {
    MUSTER_RETURN_IF_ERROR(SetTime(pair.to.name, pair.from.modified));
  }
  return found.path;
}

absl::StatusOr<std::string> FetchToLocal(const std::string& location,
                                         const std::function<void(const std::string&)>& log) {
  if (!IsRemote(location)) return LocalPath(location);
  Storage storage;
  MUSTER_ASSIGN_OR_RETURN(const Url url, ParseUrl(location));
  return LocalCopy(storage, url, CacheFolder(), log);
}

}  // namespace muster::storage
