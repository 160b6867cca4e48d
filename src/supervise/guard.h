// Runs a function in a child process and cleans up after it, even if it is killed.
#pragma once

#include <functional>

namespace muster::supervise {

// Forks, and runs `body` in the child. Returns in both processes; the caller exits with the
// returned code.
//
// In the child, returns the result of `body`. The child receives SIGTERM if the parent dies, and
// its soft limit of open files is raised to the hard limit.
//
// In the parent, calls `in_parent`, waits for the child, kills every remaining descendant, and
// returns the child's exit code, or 1 if a signal killed it. Returns -1 if fork fails; neither
// function is called then.
//
// Both processes are subreapers, and ignore SIGHUP, SIGINT, SIGTERM and SIGPIPE until `body`
// installs handlers.
int RunGuarded(const std::function<int()>& body, const std::function<void()>& in_parent);

}  // namespace muster::supervise
