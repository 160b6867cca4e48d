#include "supervise/guard.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "process/tree.h"

namespace muster::supervise {
namespace {

// Each task needs a pipe, a log, an index and a port, so large jobs exceed the usual soft limit of
// 1024.
void RaiseFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int RunGuarded(const std::function<int()>& body, const std::function<void()>& in_parent) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGPIPE}) ::signal(signal, SIG_IGN);
  const pid_t guard = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return -1;
  if (child == 0) {
    // If the guard is killed, the job ends gracefully: a supervisor treats SIGTERM as a request to
    // stop.
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    // A child does not inherit the subreaper attribute.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    // The guard may have died before PR_SET_PDEATHSIG took effect.
    if (::getppid() != guard) return 1;
    RaiseFileLimit();
    return body();
  }
  in_parent();
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  // If the child was killed, its own children died with it (PDEATHSIG). Their descendants were
  // reparented to this process, the next subreaper above.
  process::KillAllDescendants();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace muster::supervise
