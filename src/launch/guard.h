// Keeps a process from leaving anything behind when it is killed.
#pragma once

#include <functional>

namespace muster {

// Forks. The child runs `body`, and its result is the exit code; it receives SIGTERM when the
// parent is killed. The parent waits, ends every process that is left below it, and returns the
// child's exit code: 1 when it was killed. -1 when this machine is out of processes. Both are
// subreapers, and ignore the signals by which users end programs until `body` sees to them. The
// child may open as many files as the hard limit allows. `in_parent` is called in the parent at
// once.
int RunGuarded(const std::function<int()>& body, const std::function<void()>& in_parent);

}  // namespace muster
