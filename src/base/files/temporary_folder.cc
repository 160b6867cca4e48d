#include "base/files/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/files/files.h"
#include "base/status_macros.h"

namespace muster::base {

absl::StatusOr<TemporaryFolder> TemporaryFolder::Create(std::string parent) {
  if (parent.empty()) {
    std::error_code error;
    parent = std::filesystem::temp_directory_path(error).string();
    if (error) parent = "/tmp";
  }
  MUSTER_RETURN_IF_ERROR(MakeDirectories(parent));
  std::string path = JoinPath(parent, "muster-XXXXXX");
  if (::mkdtemp(path.data()) == nullptr) return DiskError(errno, path);
  return TemporaryFolder(std::move(path));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::File(absl::string_view name) const { return JoinPath(path_, name); }

}  // namespace muster::base
