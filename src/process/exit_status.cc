#include "process/exit_status.h"

#include <string.h>
#include <sys/wait.h>

#include "absl/strings/str_cat.h"

namespace muster::process {

ExitStatus ExitStatus::FromWait(int wait_status) {
  if (WIFSIGNALED(wait_status)) return Signaled(WTERMSIG(wait_status));
  return Exited(WEXITSTATUS(wait_status));
}

std::string SignalName(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? absl::StrCat("signal ", signal) : absl::StrCat("SIG", name);
}

std::string ExitStatus::Describe() const {
  if (signal_ != 0) return absl::StrCat("killed by ", SignalName(signal_));
  if (code_ > 128 && ::sigabbrev_np(code_ - 128) != nullptr) {
    return absl::StrCat("exit code ", code_, " (128 + ", SignalName(code_ - 128), ")");
  }
  return absl::StrCat("exit code ", code_);
}

}  // namespace muster::process
