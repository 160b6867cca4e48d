#include "checkpoint/disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "checkpoint/format.h"

namespace muster::checkpoint {

absl::Status WriteFully(int fd, absl::Span<const std::byte> bytes, absl::string_view path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::DiskError(errno, path);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::StatusOr<OpenedFile> OpenRegular(const std::string& folder, const std::string& name) {
  const std::string path = base::JoinPath(folder, name);
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  OpenedFile file;
  file.fd = base::UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.fd.valid()) {
    if (errno == ELOOP) return absl::DataLossError(absl::StrCat(path, ": is a symbolic link"));
    return absl::ErrnoToStatus(errno, path);
  }
  struct stat info {};
  if (::fstat(file.fd.get(), &info) != 0) return absl::ErrnoToStatus(errno, path);
  if (!S_ISREG(info.st_mode)) return absl::DataLossError(absl::StrCat(path, ": is not a file"));
  file.bytes = info.st_size;
  return file;
}

absl::StatusOr<nlohmann::json> ParseJsonObject(absl::string_view text) {
  auto json = base::ParseJson(text, kMaxJsonDepth);
  if (json.is_discarded() && base::NestsDeeperThan(text, kMaxJsonDepth)) {
    return absl::DataLossError(absl::StrCat("nests deeper than ", kMaxJsonDepth, " levels"));
  }
  if (json.is_discarded()) return absl::DataLossError("is not valid JSON");
  if (!json.is_object()) return absl::DataLossError("is not a JSON object");
  return json;
}

absl::StatusOr<nlohmann::json> ReadJsonObject(const std::string& folder, const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(const OpenedFile file, OpenRegular(folder, name));
  const auto text = base::ReadAll(file.fd.get(), kMaxJsonBytes);
  auto json = text.ok() ? ParseJsonObject(*text) : absl::DataLossError(text.status().message());
  if (!json.ok()) return base::Annotate(json.status(), base::JoinPath(folder, name));
  return json;
}

bool Exists(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

absl::Status Rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return base::DiskError(errno, to);
  return absl::OkStatus();
}

absl::Status RemoveFolder(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(std::filesystem::symlink_status(path, error))) {
    const std::string manifest = base::JoinPath(path, kManifestFile);
    if (::unlink(manifest.c_str()) != 0 && errno != ENOENT) {
      return absl::ErrnoToStatus(errno, manifest);
    }
  }
  std::filesystem::remove_all(path, error);  // does not follow links
  if (error) return absl::ErrnoToStatus(error.value(), path);
  return absl::OkStatus();
}

}  // namespace muster::checkpoint
