#include "data/convert/convert_target.h"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/status_macros.h"

namespace muster::data {

namespace fs = std::filesystem;

absl::StatusOr<ConvertTarget> ConvertTarget::Open(const std::string& folder) {
  ConvertTarget target(folder);
  std::error_code error;
  for (fs::path path = fs::absolute(folder, error).lexically_normal();
       !path.empty() && !fs::exists(path, error); path = path.parent_path()) {
    if (path.has_filename()) target.created_.insert(target.created_.begin(), path.string());
  }
  MUSTER_RETURN_IF_ERROR(base::MakeDirectories(folder, 0755));
  MUSTER_ASSIGN_OR_RETURN(target.lock_, base::FileLock::TryFolder(folder));
  if (!target.lock_.has_value()) {
    return absl::FailedPreconditionError(absl::StrCat(
        folder, ": another process is converting into this folder; wait until it ends"));
  }
  std::string staging = base::JoinPath(folder, ".convert-XXXXXX");
  if (::mkdtemp(staging.data()) == nullptr) return base::DiskError(errno, folder);
  target.staging_ = staging;
  return target;
}

ConvertTarget::ConvertTarget(ConvertTarget&& other) noexcept
    : folder_(std::move(other.folder_)),
      lock_(std::move(other.lock_)),
      staging_(std::exchange(other.staging_, "")),
      created_(std::exchange(other.created_, {})) {}

ConvertTarget::~ConvertTarget() {
  std::error_code ignored;
  if (!staging_.empty()) fs::remove_all(staging_, ignored);
  // rmdir() fails for folders that are not empty: those stay.
  for (auto folder = created_.rbegin(); folder != created_.rend(); ++folder)
    ::rmdir(folder->c_str());
}

absl::Status ConvertTarget::Publish(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const std::string path = base::JoinPath(folder_, name);
    if (std::rename(base::JoinPath(staging_, name).c_str(), path.c_str()) != 0) {
      return base::DiskError(errno, path);
    }
  }
  return base::SyncFolder(folder_);
}

}  // namespace muster::data
