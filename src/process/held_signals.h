// Scopes in which this process treats termination signals, such as Ctrl-C, differently:
//   HeldSignals      deferred, during work that must clean up or finish
//   ReleasedSignals  delivered again within such a scope, while there is nothing to clean up
//   IgnoredSignal    dropped, while a child process handles it
#pragma once

#include <signal.h>

#include <initializer_list>

namespace muster::process {

// Blocks signals in this thread, and in threads that it starts, for the lifetime of the object.
// Pending signals are delivered when it is destroyed. REQUIRES: created before other threads are
// started, because a thread without the mask would receive the signal.
class HeldSignals {
 public:
  // By default all signals by which users end a command: SIGINT, SIGTERM and SIGHUP.
  explicit HeldSignals(std::initializer_list<int> signals = {SIGINT, SIGTERM, SIGHUP}) {
    ::sigemptyset(&held_);
    for (const int signal : signals) ::sigaddset(&held_, signal);
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
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      if (::sigismember(&held_, signal) == 1 && IsPending(signal)) return true;
    }
    return false;
  }

  // Returns whether a signal that somebody holds is pending in this process.
  static bool IsPending(int signal) {
    sigset_t pending;
    ::sigpending(&pending);
    return ::sigismember(&pending, signal) == 1;
  }

  const sigset_t& set() const { return held_; }

 private:
  sigset_t held_;
  sigset_t before_;
};

// Unblocks signals in this thread for the lifetime of the object.
class ReleasedSignals {
 public:
  explicit ReleasedSignals(std::initializer_list<int> signals) {
    sigset_t released;
    ::sigemptyset(&released);
    for (const int signal : signals) ::sigaddset(&released, signal);
    ::pthread_sigmask(SIG_UNBLOCK, &released, &before_);
  }
  ~ReleasedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  ReleasedSignals(const ReleasedSignals&) = delete;
  ReleasedSignals& operator=(const ReleasedSignals&) = delete;

 private:
  sigset_t before_;
};

// Ignores a signal in this process for the lifetime of the object.
class IgnoredSignal {
 public:
  explicit IgnoredSignal(int signal) : signal_(signal), previous_(::signal(signal, SIG_IGN)) {}
  ~IgnoredSignal() { ::signal(signal_, previous_); }
  IgnoredSignal(const IgnoredSignal&) = delete;
  IgnoredSignal& operator=(const IgnoredSignal&) = delete;

 private:
  const int signal_;
  const sighandler_t previous_;
};

}  // namespace muster::process
