#include "base/files/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/files/files.h"
#include "base/status_macros.h"

namespace muster::base {

absl::StatusOr<std::optional<FileLock>> FileLock::Lock(UniqueFd fd, Mode mode,
                                                       const std::string& path) {
  if (!fd.valid()) return DiskError(errno, path);
  const int operation = mode == Mode::kShared ? LOCK_SH : LOCK_EX;
  if (::flock(fd.get(), operation | LOCK_NB) == 0) return FileLock(std::move(fd));
  if (errno == EWOULDBLOCK || errno == EINTR) return std::nullopt;
  return Annotate(absl::ErrnoToStatus(errno, path), "cannot lock");
}

absl::StatusOr<std::optional<FileLock>> FileLock::Try(const std::string& path, Mode mode) {
  return Lock(UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644)), mode,
              path);
}

absl::StatusOr<std::optional<FileLock>> FileLock::TryFolder(const std::string& path) {
  return Lock(UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), Mode::kExclusive,
              path);
}

absl::StatusOr<FileLock> FileLock::Acquire(const std::string& path, const WaitOptions& options) {
  const absl::Time deadline = Clock::Real().Now() + options.timeout;
  for (;;) {
    MUSTER_ASSIGN_OR_RETURN(std::optional<FileLock> lock, Try(path, options.mode));
    if (lock.has_value()) return *std::move(lock);
    if (options.cancelled && options.cancelled()) return absl::CancelledError("interrupted");
    if (Clock::Real().Now() >= deadline) {
      return absl::UnavailableError(absl::StrCat(path, ": timed out after ",
                                                 absl::FormatDuration(options.timeout),
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

}  // namespace muster::base
