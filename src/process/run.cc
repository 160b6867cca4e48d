#include "process/run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"

namespace muster::process {
namespace {

constexpr size_t kMaxReads = 256;  // so that endless output cannot defer the deadline
constexpr absl::Duration kCancelPoll = absl::Milliseconds(100);
constexpr absl::Duration kCancelGrace = absl::Seconds(5);

// Rounded down and capped at a minute: callers compare the clock with the deadline after each poll.
int MillisecondsUntil(absl::Time deadline) {
  const int64_t left = absl::ToInt64Milliseconds(deadline - base::Clock::Real().Now());
  return static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
}

base::UniqueFd OpenPidFd(pid_t pid) {
  return base::UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

ExitStatus Reap(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return ExitStatus::FromWait(status);
}

// Reads the available output and keeps at most `max_bytes`. Returns false at end of file.
bool Drain(int fd, size_t max_bytes, std::string& kept) {
  std::array<char, 16384> buffer;
  for (size_t reads = 0; reads < kMaxReads; ++reads) {
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    if (n == 0) return false;
    kept.append(buffer.data(), std::min(static_cast<size_t>(n), max_bytes - kept.size()));
  }
  return true;
}

}  // namespace

absl::StatusOr<Pipe> MakePipe() {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe");
  return Pipe{.read = base::UniqueFd(ends[0]), .write = base::UniqueFd(ends[1])};
}

ExitStatus WaitOrKill(pid_t pid, absl::Duration timeout) {
  const base::UniqueFd process = OpenPidFd(pid);
  const absl::Time deadline = base::Clock::Real().Now() + timeout;
  pollfd ended{process.get(), POLLIN, 0};
  while (::poll(&ended, 1, MillisecondsUntil(deadline)) <= 0) {
    if (base::Clock::Real().Now() < deadline) continue;
    ::kill(pid, SIGKILL);
    break;
  }
  return Reap(pid);
}

absl::StatusOr<RunResult> Run(SpawnOptions options, absl::Duration timeout, size_t max_bytes,
                              const std::function<bool()>& cancelled) {
  MUSTER_ASSIGN_OR_RETURN(Pipe pipe, MakePipe());
  ::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
  options.output_fd = pipe.write.get();
  options.new_group = true;
  MUSTER_ASSIGN_OR_RETURN(const pid_t pid, Spawn(options));
  pipe.write.Reset();
  const base::UniqueFd process = OpenPidFd(pid);
  const absl::Time deadline = base::Clock::Real().Now() + timeout;
  std::string output;
  std::array<pollfd, 2> waits = {pollfd{process.get(), POLLIN, 0},
                                 pollfd{pipe.read.get(), POLLIN, 0}};
  do {
    if (base::Clock::Real().Now() >= deadline) {
      ::kill(-pid, SIGKILL);  // the whole group
      Reap(pid);
      return absl::DeadlineExceededError(
          absl::StrCat(options.argv[0], " timed out after ", absl::FormatDuration(timeout)));
    }
    if (cancelled && cancelled()) {
      ::kill(-pid, SIGTERM);
      WaitOrKill(pid, kCancelGrace);
      ::kill(-pid, SIGKILL);  // the rest of the group, if any
      return absl::CancelledError("interrupted");
    }
    const absl::Time next_poll = base::Clock::Real().Now() + kCancelPoll;
    ::poll(waits.data(), waits.size(),
           MillisecondsUntil(cancelled ? std::min(deadline, next_poll) : deadline));
    if (!Drain(pipe.read.get(), max_bytes, output)) waits[1].fd = -1;
    // Ends with the process, not with its output: background processes may keep the pipe open.
  } while ((waits[0].revents & POLLIN) == 0);
  return RunResult{std::move(output), Reap(pid)};
}

}  // namespace muster::process
