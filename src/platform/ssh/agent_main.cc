#include "platform/ssh/agent_main.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/files/file_lock.h"
#include "base/files/files.h"
#include "base/files/unique_fd.h"
#include "base/status_macros.h"
#include "platform/ssh/agent.h"
#include "platform/ssh/keys.h"
#include "platform/ssh/setup_server.h"
#include "platform/ssh/wire.h"
#include "process/run.h"
#include "process/unix_socket.h"
#include "supervise/guard.h"

namespace muster::ssh {
namespace {

constexpr absl::Duration kLockTimeout = absl::Seconds(15);

// Copies the bytes that are available. Returns false at the end of the stream.
bool Copy(int from, int to) {
  std::array<char, 65536> buffer;
  const ssize_t n = ::read(from, buffer.data(), buffer.size());
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  return n > 0 && base::WriteAll(to, {buffer.data(), static_cast<size_t>(n)}).ok();
}

// Runs the agent in its own session, without inherited descriptors except the lock. Writes "ok" or
// an error to `ready` once it serves.
int BecomeAgent(const std::string& folder, const std::string& job, base::UniqueFd ready) {
  ::setsid();
  ::signal(SIGHUP, SIG_IGN);
  const base::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const base::UniqueFd log(::open(base::JoinPath(folder, "agent.log").c_str(),
                                  O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  ::dup2(null.get(), STDIN_FILENO);
  ::dup2(log.valid() ? log.get() : null.get(), STDOUT_FILENO);
  ::dup2(log.valid() ? log.get() : null.get(), STDERR_FILENO);
  (void)!::chdir("/");
  return supervise::RunGuarded(
      [&] {
        auto agent = Agent::Create(folder, job);
        (void)base::WriteAll(ready.get(),
                             agent.ok() ? "ok" : std::string(agent.status().message()));
        ready.Reset();
        if (!agent.ok()) return 1;
        const absl::Status status = (*agent)->Run();
        agent->reset();
        if (status.ok()) {  // the supervisor has closed the job
          RemoveKeys(folder);
          return 0;
        }
        std::fprintf(stderr, "%s\n", status.ToString().c_str());
        return 1;
      },
      [&] { ready.Reset(); });
}

// Returns once the agent serves.
absl::Status StartAgent(const std::string& folder, const std::string& job) {
  MUSTER_ASSIGN_OR_RETURN(process::Pipe ready, process::MakePipe());
  const pid_t child = ::fork();
  if (child < 0) return absl::ErrnoToStatus(errno, "fork");
  if (child == 0) {
    ready.read.Reset();
    // The second fork reparents the agent, so that it is not a child of this process.
    if (::fork() != 0) ::_exit(0);
    ::_exit(BecomeAgent(folder, job, std::move(ready.write)));
  }
  ready.write.Reset();
  ::waitpid(child, nullptr, 0);
  MUSTER_ASSIGN_OR_RETURN(const std::string answer, base::ReadAll(ready.read.get(), 1 << 16));
  if (answer == "ok") return absl::OkStatus();
  return absl::UnavailableError(answer.empty() ? "the agent exited during startup" : answer);
}

// Connects to the job's agent, and starts one if there is none. The lock is acquired before the
// start and inherited by the agent, so concurrent callers start only one. An agent that ends may
// hold the lock after its socket is gone.
absl::StatusOr<base::UniqueFd> FindAgent(const std::string& folder, const std::string& job) {
  const absl::Time give_up = base::Clock::Real().Now() + kLockTimeout;
  for (;;) {
    if (auto socket = process::ConnectTo(folder, kAgentSocket); socket.ok()) return socket;
    MUSTER_ASSIGN_OR_RETURN(const auto lock,
                            base::FileLock::Try(base::JoinPath(folder, kAgentLock)));
    if (lock.has_value()) {
      MUSTER_RETURN_IF_ERROR(StartAgent(folder, job));
      return process::ConnectTo(folder, kAgentSocket);
    }
    if (base::Clock::Real().Now() > give_up) {
      return absl::UnavailableError(
          absl::StrCat("the previous agent does not exit; see ", folder, "/agent.log"));
    }
    absl::SleepFor(absl::Milliseconds(20));
  }
}

int Attach(const std::string& folder, const std::string& job) {
  ::signal(SIGPIPE, SIG_IGN);
  const auto socket = FindAgent(folder, job);
  if (!socket.ok()) {
    std::fprintf(stderr, "muster-agent: %s\n", std::string(socket.status().message()).c_str());
    return 1;
  }
  if (!base::WriteAll(STDOUT_FILENO, kPreface).ok()) return 0;
  for (;;) {
    std::array<pollfd, 2> fds = {pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{socket->get(), POLLIN, 0}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return 1;
    if (fds[0].revents != 0 && !Copy(STDIN_FILENO, socket->get())) return 0;
    if (fds[1].revents != 0 && !Copy(socket->get(), STDOUT_FILENO)) return 0;
  }
}

}  // namespace

int AgentMain(int argc, char** argv) {
  ::signal(SIGXFSZ, SIG_IGN);  // a write past the file size limit fails with EFBIG
  const absl::string_view command = argc > 1 ? argv[1] : "";
  if (command == "session" && argc == 2) return ServeSetup(STDIN_FILENO, STDOUT_FILENO);
  if (command == "attach" && argc == 4) return Attach(argv[2], argv[3]);
  std::fprintf(stderr,
               "muster-agent is started by `muster run` on the machines of a job; do not run it "
               "manually\n");
  return 2;
}

}  // namespace muster::ssh
