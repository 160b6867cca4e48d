// Creates files below a folder under untrusted names, as when unpacking an archive.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"

namespace muster::base {

// Never creates anything outside the folder: no component of a path may be "." or "..", nor be a
// symbolic link. Uses openat2(RESOLVE_BENEATH), or opens component by component where the kernel or
// a sandbox does not offer it. Not thread-safe.
class ConfinedFolder {
 public:
  enum class Resolver { kKernel, kPartByPart };

  // Opens an existing folder. Symbolic links in `path` are followed: the caller chose that path.
  static absl::StatusOr<ConfinedFolder> Open(const std::string& path,
                                             Resolver resolver = Resolver::kKernel);

  // Creates a new file, and its missing parents, and returns it open for writing. Returns
  // InvalidArgument if `path` leads out of the folder, FailedPrecondition if a component is a link
  // or a file, AlreadyExists if the name is taken.
  absl::StatusOr<UniqueFd> CreateFile(const std::string& path, mode_t mode);
  // Creates a symbolic link, with the same errors. `target` is stored unchecked.
  absl::Status CreateLink(const std::string& path, const std::string& target);

 private:
  ConfinedFolder(std::string path, UniqueFd root, Resolver resolver)
      : path_(std::move(path)), root_(std::move(root)), resolver_(resolver) {}
  // Returns the open parent folder of `path`, and the last component.
  absl::StatusOr<std::pair<UniqueFd, std::string>> OpenParent(const std::string& path) const;
  // Opens `folder` component by component, creating those that are missing.
  absl::StatusOr<UniqueFd> Walk(const std::string& folder) const;
  absl::Status Failure(int error, const std::string& path) const;

  std::string path_;
  UniqueFd root_;
  Resolver resolver_;
};

}  // namespace muster::base
