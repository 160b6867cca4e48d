#include "launch/guard.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "process/tree.h"

namespace muster {
namespace {

// Each task costs a pipe, a log, an index and a port: more than the usual soft limit of 1024
// allows.
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
    // A guard that is killed takes the job down in good order: SIGTERM is a request to stop.
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (::getppid() != guard) return 1;
    RaiseFileLimit();
    return body();
  }
  in_parent();
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  // When it was killed, its children died with it (PDEATHSIG), but what they had started has become
  // ours, because we are the next subreaper above.
  KillAllDescendants();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace muster
