// What the tests of jobs on this machine share: a home, submissions, patience.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "base/testing.h"
#include "gtest/gtest.h"
#include "job/testing.h"
#include "launch/job_dir.h"

namespace muster {

// A folder under the temporary directory, removed at the end.
class LaunchTest : public testing::Test {
 protected:
  Submission Submit(absl::string_view job_file) const {
    Submission submission;
    submission.id = std::filesystem::path(home_).filename().string();
    submission.spec = MustParse(job_file);
    submission.source = std::string(job_file);
    submission.working_dir = home_;
    submission.trainer = "/usr/bin/muster-trainer";
    submission.created = absl::FromUnixSeconds(1'700'000'000);
    return submission;
  }

  JobDir dir() const { return JobDir::Of(home_, "job"); }

  const TempDir temp_;
  const std::string home_ = temp_.path();
};

// While it lives, this process can open nothing; what is open stays so.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &limit_);
    const rlimit none{.rlim_cur = 0, .rlim_max = limit_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &limit_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit limit_{};
};

// Waits for something that is about to happen; the limit is for a machine under load.
inline bool Eventually(const std::function<bool()>& happened,
                       absl::Duration limit = absl::Seconds(30)) {
  const absl::Time give_up = absl::Now() + limit;
  while (!happened()) {
    if (absl::Now() > give_up) return false;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return true;
}

}  // namespace muster
