// Signals kept back until a piece of work has been brought to an end.
#pragma once

#include <signal.h>

namespace muster::cli {

// Keeps back the signals that end a program, so that what was begun can be removed first; then they
// have their effect. Made before threads are started, which must keep them back as well.
class HeldSignals {
 public:
  HeldSignals() {
    ::sigemptyset(&held_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&held_, signal);
    ::pthread_sigmask(SIG_BLOCK, &held_, &before_);
  }
  ~HeldSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  // Takes one of them, so that it has no effect any more. False when there is none.
  bool Take() const {
    const timespec at_once = {};
    return ::sigtimedwait(&held_, nullptr, &at_once) > 0;
  }

  bool any() const {
    sigset_t pending;
    ::sigpending(&pending);
    return ::sigismember(&pending, SIGINT) != 0 || ::sigismember(&pending, SIGTERM) != 0 ||
           ::sigismember(&pending, SIGHUP) != 0;
  }

 private:
  sigset_t held_;
  sigset_t before_;
};

}  // namespace muster::cli
