#include "base/files/cache_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/status_macros.h"

namespace muster::base {
namespace {

namespace fs = std::filesystem;

// Checks each component of an absolute path with lstat(), so a symbolic link is checked by the
// owner of the link and not of its target.
absl::Status CheckParts(const fs::path& path) {
  fs::path at;
  bool open_to_all = false;  // the parent of `at` is world-writable
  for (const fs::path& part : path) {
    at /= part;
    if (part.empty()) continue;  // trailing slash
    struct stat info {};
    if (::lstat(at.c_str(), &info) != 0) return DiskError(errno, at.string());
    if (open_to_all && info.st_uid != ::geteuid() && info.st_uid != 0) {
      return absl::PermissionDeniedError(absl::StrCat(
          at.string(), " belongs to another user (uid ", info.st_uid,
          "), who could replace its contents; set MUSTER_CACHE to a folder of your own"));
    }
    open_to_all = S_ISDIR(info.st_mode) && (info.st_mode & S_IWOTH) != 0;
  }
  if (!open_to_all) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(at.string(), " is world-writable; run chmod o-w on it, or set ",
                   "MUSTER_CACHE to a folder of your own"));
}

}  // namespace

std::string UserCacheFolder(const Variables& variables) {
  if (const std::string xdg = variables("XDG_CACHE_HOME"); !xdg.empty() && xdg.front() == '/') {
    return JoinPath(xdg, "muster");
  }
  const std::string home = variables("HOME");
  return home.empty() ? absl::StrCat("/tmp/muster-", ::geteuid()) : JoinPath(home, ".cache/muster");
}

absl::Status MakeTrustedFolder(const std::string& path) {
  MUSTER_RETURN_IF_ERROR(MakeDirectories(path, 0700));
  // Both spellings are checked: the path as given catches links that another user owns, the
  // canonical one catches own links that lead into another user's folder.
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error).lexically_normal();
  if (!error) MUSTER_RETURN_IF_ERROR(CheckParts(absolute));
  const fs::path real = fs::canonical(path, error);
  if (error) return absl::ErrnoToStatus(error.value(), path);
  return CheckParts(real);
}

}  // namespace muster::base
