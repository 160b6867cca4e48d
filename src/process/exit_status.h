// How a process ended.
#pragma once

#include <string>

namespace muster::process {

class ExitStatus {
 public:
  static ExitStatus Exited(int code) { return ExitStatus(code, 0); }
  static ExitStatus Signaled(int signal) { return ExitStatus(128 + signal, signal); }
  // From waitpid's status word.
  static ExitStatus FromWait(int wait_status);

  bool ok() const { return code_ == 0; }
  int code() const { return code_; }      // 128 + n for signal n, as in shells
  int signal() const { return signal_; }  // 0 = not killed by a signal
  // Returns "exit code 1", "killed by SIGKILL" or "exit code 137 (128 + SIGKILL)".
  std::string Describe() const;

 private:
  ExitStatus(int code, int signal) : code_(code), signal_(signal) {}
  int code_;
  int signal_;
};

// Returns "SIGTERM", or "signal 77" for a signal without a name.
std::string SignalName(int signal);

}  // namespace muster::process
