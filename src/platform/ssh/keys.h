// TLS keys of jobs on a host, in tls/ of the job's folder. They are written before the job starts
// and read by every attempt of a task.
#pragma once

#include <string>

#include "absl/time/time.h"

namespace muster::ssh {

// Keeps a job's keys while its agent lives by renewing their modification time, which
// RemoveAbandonedKeys() checks. Not thread-safe.
class KeyLease {
 public:
  // `folder` is the job's folder.
  explicit KeyLease(std::string folder) : folder_(std::move(folder)) {}

  // Renews the lease if it is due.
  void Advance(absl::Time now);
  absl::Time next_timer() const { return renew_at_; }

 private:
  const std::string folder_;
  absl::Time renew_at_ = absl::InfinitePast();
};

void RemoveKeys(const std::string& folder);

// Removes the keys of jobs on host `node` whose lease was not renewed for a day and whose agent
// does not respond: those jobs ended while the host was unreachable. `jobs` may be shared with
// other hosts, whose keys are left alone.
void RemoveAbandonedKeys(const std::string& jobs, const std::string& node, absl::Time now);

}  // namespace muster::ssh
