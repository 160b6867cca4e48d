#include "base/files/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/files/unique_fd.h"
#include "base/status_macros.h"

namespace muster::base {

absl::StatusOr<std::string> ReadRegularFile(const std::string& path, int64_t max_bytes) {
  // O_NONBLOCK keeps open() from waiting for the writer of a FIFO; regular files ignore it.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) return absl::ErrnoToStatus(errno, path);
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": not a regular file"));
  }
  auto content = ReadAll(fd.get(), max_bytes);
  if (!content.ok()) return Annotate(content.status(), path);
  return content;
}

}  // namespace muster::base
