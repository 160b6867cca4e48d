// Shared by the tests of jobs on this machine: a home folder and submissions.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/testing.h"
#include "gtest/gtest.h"
#include "job/testing.h"
#include "supervise/job_dir.h"

namespace muster::supervise {

// Provides a home folder that is removed at the end of the test.
class LaunchTest : public testing::Test {
 protected:
  job::Submission Submit(absl::string_view job_file) const {
    job::Submission submission;
    submission.id = std::filesystem::path(home_).filename().string();
    submission.spec = job::MustParse(job_file);
    submission.source = std::string(job_file);
    submission.working_dir = home_;
    submission.trainer = "/usr/bin/muster-trainer";
    submission.created = absl::FromUnixSeconds(1'700'000'000);
    return submission;
  }

  JobDir dir() const { return JobDir::Of(home_, "job"); }

  const base::TempDir temp_;
  const std::string home_ = temp_.path();
};

}  // namespace muster::supervise
