// The keys of jobs on a host: tls/ in a job's folder, written before the job starts, read by every
// attempt of a task.
#pragma once

#include <string>

#include "absl/time/time.h"

namespace muster::ssh {

// Keeps a job's keys while its agent lives: renews their time, by which RemoveAbandonedKeys goes.
// Not thread-safe.
class KeyLease {
 public:
  // `folder` is the job's.
  explicit KeyLease(std::string folder) : folder_(std::move(folder)) {}

  // Renews it when it is due.
  void Advance(absl::Time now);
  absl::Time next_timer() const { return renew_at_; }

 private:
  const std::string folder_;
  absl::Time renew_at_ = absl::InfinitePast();
};

void RemoveKeys(const std::string& folder);

// Removes the keys of jobs on the host `node` whose agents have not lived for a day: the jobs ended
// while the host was away. Other hosts may share `jobs`; theirs are left to them.
void RemoveAbandonedKeys(const std::string& jobs, const std::string& node, absl::Time now);

}  // namespace muster::ssh
