// Defers termination signals during work that must clean up.
#pragma once

#include <signal.h>

namespace muster::cli {

// Blocks SIGINT, SIGTERM and SIGHUP in this thread for the lifetime of the object. Pending signals
// are delivered when it is destroyed. REQUIRES: created before other threads are started, because
// threads inherit the mask and a thread without it would receive the signal.
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

  // Consumes one pending signal, which is then not delivered. Returns false if none is pending.
  bool Take() const {
    const timespec no_wait = {};
    return ::sigtimedwait(&held_, nullptr, &no_wait) > 0;
  }

  // Returns whether a signal is pending, without consuming it.
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
