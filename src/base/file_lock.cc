#include "base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/status_macros.h"

namespace muster {

absl::StatusOr<std::optional<FileLock>> FileLock::Try(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd.valid()) return DiskError(errno, path);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return FileLock(std::move(fd));
  if (errno == EWOULDBLOCK) return std::nullopt;
  return Annotate(absl::ErrnoToStatus(errno, path), "cannot lock");
}

absl::StatusOr<FileLock> FileLock::Acquire(const std::string& path, absl::Duration timeout) {
  const absl::Time deadline = Clock::Real().Now() + timeout;
  for (;;) {
    MUSTER_ASSIGN_OR_RETURN(std::optional<FileLock> lock, Try(path));
    if (lock.has_value()) return *std::move(lock);
    if (Clock::Real().Now() >= deadline) {
      return absl::UnavailableError(absl::StrCat(path, ": timed out after ",
                                                 absl::FormatDuration(timeout),
                                                 " waiting for another process to release this "
                                                 "lock; check for one that hangs"));
    }
    absl::SleepFor(absl::Milliseconds(10));  // flock() has no timeout
  }
}

void FileLock::Describe(absl::string_view holder) {
  if (::ftruncate(fd_.get(), 0) != 0) return;
  (void)!::pwrite(fd_.get(), holder.data(), holder.size(), 0);
}

}  // namespace muster
