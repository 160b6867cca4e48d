// A folder below which files are created by names that others chose.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace muster {

// Nothing is created outside of the folder, whatever a path says and whatever links lie in it: no
// part of a path may be "..", or lead through a symbolic link. Uses openat2(RESOLVE_BENEATH), or
// opens part by part where the kernel or its sandbox lacks that. Not thread-safe.
class ConfinedFolder {
 public:
  enum class Resolver { kKernel, kPartByPart };

  // The folder exists. Links on the way to it are followed: its path is the caller's own.
  static absl::StatusOr<ConfinedFolder> Open(const std::string& path,
                                             Resolver resolver = Resolver::kKernel);

  // A new file for writing, and the folders above it that are missing. InvalidArgument for a path
  // that leads out of the folder, FailedPrecondition for one through a link or a file,
  // AlreadyExists.
  absl::StatusOr<UniqueFd> CreateFile(const std::string& path, mode_t mode);
  // A new symbolic link, likewise. Its target is written as it is.
  absl::Status CreateLink(const std::string& path, const std::string& target);

 private:
  ConfinedFolder(std::string path, UniqueFd root, Resolver resolver)
      : path_(std::move(path)), root_(std::move(root)), resolver_(resolver) {}
  // The folder that `path` names something in, and the name.
  absl::StatusOr<std::pair<UniqueFd, std::string>> OpenParent(const std::string& path) const;
  absl::StatusOr<UniqueFd> Walk(const std::string& folder) const;
  absl::Status Failure(int error, const std::string& path) const;

  std::string path_;
  UniqueFd root_;
  Resolver resolver_;
};

}  // namespace muster
