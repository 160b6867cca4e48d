#include "launch/supervise.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "base/files.h"
#include "base/unique_fd.h"
#include "launch/local/runner.h"
#include "launch/supervisor.h"
#include "process/tree.h"

namespace muster {
namespace {

// Waits for the supervisor. When it was killed, its tasks died with it (PDEATHSIG) but what they
// had started has become ours, because we are the next subreaper above.
int Guard(pid_t supervisor) {
  int status = 0;
  while (::waitpid(supervisor, &status, 0) < 0 && errno == EINTR) {
  }
  KillAllDescendants();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

void Report(UniqueFd& fd, const std::string& text) {
  if (!fd.valid()) return;
  (void)WriteAll(fd.get(), text);
  fd.Reset();
}

absl::StatusOr<std::unique_ptr<Runner>> MakeRunner(const JobDir& dir, const Submission& submission,
                                                   EventLoop& loop, RunnerEvents& events) {
  return std::make_unique<local::LocalRunner>(dir, submission.id, loop, events);
}

int RunSupervisor(const std::string& job_dir, UniqueFd report,
                  const std::function<absl::StatusOr<std::unique_ptr<EventSink>>()>& open_sink) {
  auto sink = open_sink();
  if (!sink.ok()) {
    Report(report, std::string(sink.status().message()));
    return 1;
  }
  auto supervisor = Supervisor::Create(JobDir(job_dir), **sink, MakeRunner);
  if (!supervisor.ok()) {
    Report(report, std::string(supervisor.status().message()));
    return 1;
  }
  Report(report, "ok\n");
  const absl::Status status = (*supervisor)->Run();
  if (status.ok()) return 0;
  std::fprintf(stderr, "supervisor: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace

int Supervise(const std::string& job_dir, int report_fd,
              const std::function<absl::StatusOr<std::unique_ptr<EventSink>>()>& open_sink) {
  // The report's descriptor is standard input; nothing below may read it or keep it open.
  UniqueFd report(::fcntl(report_fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  ::dup2(null.get(), report_fd);

  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGPIPE}) ::signal(signal, SIG_IGN);
  const pid_t guard = ::getpid();
  const pid_t supervisor = ::fork();
  if (supervisor < 0) {
    Report(report, "cannot fork: this machine is out of processes or memory");
    return 1;
  }
  if (supervisor > 0) {
    report.Reset();
    return Guard(supervisor);
  }
  // A guard that is killed takes the job down in good order: SIGTERM is a request to stop.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (::getppid() != guard) return 1;
  return RunSupervisor(job_dir, std::move(report), open_sink);
}

}  // namespace muster
