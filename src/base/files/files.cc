#include "base/files/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/files/unique_fd.h"
#include "base/status_macros.h"

namespace muster::base {

absl::Status DiskError(int error, absl::string_view path) {
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, ": ", std::strerror(error), "; free some space or raise the limit"));
  }
  return absl::ErrnoToStatus(error, path);
}

absl::Status WriteAll(int fd, absl::string_view data) {
  while (!data.empty()) {
    const ssize_t n = ::write(fd, data.data(), data.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return DiskError(errno, "write");
    }
    data.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadAll(int fd, int64_t max_bytes) {
  std::string content;
  char buffer[16384];
  for (;;) {
    const ssize_t n = ::read(fd, buffer, sizeof(buffer));
    if (n == 0) return content;
    if (n < 0) {
      if (errno == EINTR) continue;
      return absl::ErrnoToStatus(errno, "read");
    }
    content.append(buffer, static_cast<size_t>(n));
    if (static_cast<int64_t>(content.size()) > max_bytes) {
      return absl::OutOfRangeError(absl::StrCat("is larger than ", max_bytes, " bytes"));
    }
  }
}

absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t max_bytes) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, path);
  auto content = ReadAll(fd.get(), max_bytes);
  if (!content.ok()) return Annotate(content.status(), path);
  return content;
}

namespace {

absl::Status Replace(const std::string& path, absl::string_view content, int mode, bool sync) {
  // A dot file, so that programs that list the folder meanwhile skip it.
  const size_t slash = path.rfind('/');
  const size_t name = slash == std::string::npos ? 0 : slash + 1;
  std::string temporary = absl::StrCat(path.substr(0, name), ".", path.substr(name), ".XXXXXX");
  UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, path);
  absl::Status status = WriteAll(fd.get(), content);
  if (status.ok() && ::fchmod(fd.get(), static_cast<mode_t>(mode)) != 0) {
    status = absl::ErrnoToStatus(errno, "chmod");
  }
  if (status.ok() && sync && ::fsync(fd.get()) != 0) status = absl::ErrnoToStatus(errno, "fsync");
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) {
    status = absl::ErrnoToStatus(errno, "rename");
  }
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return Annotate(status, path);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReplaceFile(const std::string& path, absl::string_view content, int mode) {
  return Replace(path, content, mode, /*sync=*/false);
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view content, int mode) {
  MUSTER_RETURN_IF_ERROR(Replace(path, content, mode, /*sync=*/true));
  return SyncFolder(FolderOf(path));
}

std::string FolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

absl::Status SyncFolder(const std::string& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || ::fsync(fd.get()) != 0) return DiskError(errno, folder);
  return absl::OkStatus();
}

absl::Status MakeDirectories(const std::string& path, int mode) {
  if (path.empty()) return absl::InvalidArgumentError("empty path");
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(path, ": exists and is not a directory"));
  }
  const std::string parent = std::filesystem::path(path).parent_path().string();
  if (!parent.empty() && parent != path) MUSTER_RETURN_IF_ERROR(MakeDirectories(parent, mode));
  if (::mkdir(path.c_str(), static_cast<mode_t>(mode)) != 0 && errno != EEXIST) {
    return absl::ErrnoToStatus(errno, path);
  }
  return absl::OkStatus();
}

std::string JoinPath(absl::string_view directory, absl::string_view name) {
  if (directory.empty()) return std::string(name);
  return absl::StrCat(directory, directory.back() == '/' ? "" : "/", name);
}

std::string AbsolutePath(absl::string_view path, absl::string_view base) {
  if (path.find("://") != absl::string_view::npos) return std::string(path);
  std::string result =
      (std::filesystem::path(std::string(base)) / std::string(path)).lexically_normal().string();
  if (result.size() > 1 && result.back() == '/') result.pop_back();
  return result;
}

}  // namespace muster::base
