#include "supervise/leftovers.h"

#include <signal.h>

#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "process/tree.h"

namespace muster::supervise {
namespace {

constexpr absl::Duration kKillTimeout = absl::Seconds(5);

}  // namespace

int KillLeftovers(const std::string& job_id) {
  const std::string mark = absl::StrCat("MUSTER_JOB_ID=", job_id);
  std::set<pid_t> killed;
  const absl::Time give_up = absl::Now() + kKillTimeout;
  // Repeats until none is left: a process that is being started, or forked meanwhile, appears late.
  for (;;) {
    const std::vector<process::ProcessInfo> left = process::ProcessesWithEnvironment(mark);
    if (left.empty() || absl::Now() > give_up) return static_cast<int>(killed.size());
    for (const process::ProcessInfo& process : left) {
      process::SignalProcess(process, SIGKILL);
      killed.insert(process.pid);
    }
    absl::SleepFor(absl::Milliseconds(2));  // a killed process takes a moment to disappear
  }
}

}  // namespace muster::supervise
