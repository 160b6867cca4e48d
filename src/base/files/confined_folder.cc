#include "base/files/confined_folder.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files/files.h"
#include "base/status_macros.h"

namespace muster::base {
namespace {

constexpr int kFolderFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr mode_t kFolderMode = 0700;

int OpenBeneath(int root, const std::string& folder) {
  open_how how{};
  how.flags = kFolderFlags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  return static_cast<int>(::syscall(SYS_openat2, root, folder.c_str(), &how, sizeof(how)));
}

// Returns true if openat2 is not available: old kernels lack it, and sandboxes forbid it.
bool IsMissing(int error) { return error == ENOSYS || error == EPERM || error == EINVAL; }

}  // namespace

absl::StatusOr<ConfinedFolder> ConfinedFolder::Open(const std::string& path, Resolver resolver) {
  UniqueFd root(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return DiskError(errno, path);
  return ConfinedFolder(path, std::move(root), resolver);
}

absl::Status ConfinedFolder::Failure(int error, const std::string& path) const {
  const std::string full = JoinPath(path_, path);
  if (error == ELOOP || error == ENOTDIR || error == EXDEV) {
    return absl::FailedPreconditionError(
        absl::StrCat(full, ": a parent is a symbolic link or a file, not a folder"));
  }
  return DiskError(error, full);
}

absl::StatusOr<UniqueFd> ConfinedFolder::Walk(const std::string& folder) const {
  UniqueFd at(::fcntl(root_.get(), F_DUPFD_CLOEXEC, 0));
  if (!at.valid()) return DiskError(errno, path_);
  for (const absl::string_view part : absl::StrSplit(folder, '/', absl::SkipEmpty())) {
    const std::string name(part);
    if (::mkdirat(at.get(), name.c_str(), kFolderMode) != 0 && errno != EEXIST) {
      return Failure(errno, folder);
    }
    // O_NOFOLLOW rejects a link, even if another process puts it there after mkdirat().
    UniqueFd next(::openat(at.get(), name.c_str(), kFolderFlags));
    if (!next.valid()) return Failure(errno, folder);
    at = std::move(next);
  }
  return at;
}

absl::StatusOr<std::pair<UniqueFd, std::string>> ConfinedFolder::OpenParent(
    const std::string& path) const {
  for (const absl::string_view part : absl::StrSplit(path, '/')) {
    if (!part.empty() && part != "." && part != ".." && part.find('\0') == part.npos) continue;
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is not a path within a folder"));
  }
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) {
    MUSTER_ASSIGN_OR_RETURN(UniqueFd root, Walk(""));
    return std::pair(std::move(root), path);
  }
  const std::string folder = path.substr(0, slash);
  const std::string name = path.substr(slash + 1);
  if (resolver_ == Resolver::kKernel) {
    UniqueFd parent(OpenBeneath(root_.get(), folder));
    if (parent.valid()) return std::pair(std::move(parent), name);
    if (errno != ENOENT && !IsMissing(errno)) return Failure(errno, path);
  }
  // openat2 creates no folders, so missing parents take the slow path too.
  MUSTER_ASSIGN_OR_RETURN(UniqueFd parent, Walk(folder));
  return std::pair(std::move(parent), name);
}

absl::StatusOr<UniqueFd> ConfinedFolder::CreateFile(const std::string& path, mode_t mode) {
  MUSTER_ASSIGN_OR_RETURN(const auto opened, OpenParent(path));
  const auto& [parent, name] = opened;
  UniqueFd file(::openat(parent.get(), name.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!file.valid()) return Failure(errno, path);
  return file;
}

absl::Status ConfinedFolder::CreateLink(const std::string& path, const std::string& target) {
  MUSTER_ASSIGN_OR_RETURN(const auto opened, OpenParent(path));
  const auto& [parent, name] = opened;
  if (::symlinkat(target.c_str(), parent.get(), name.c_str()) != 0) return Failure(errno, path);
  return absl::OkStatus();
}

}  // namespace muster::base
