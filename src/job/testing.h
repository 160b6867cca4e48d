// What the tests of job files share.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "job/parse.h"

namespace muster {

inline ParseJobOptions TestOptions() {
  return {.file_name = "job.yaml", .working_dir = "/home/me"};
}

inline JobSpec MustParse(absl::string_view text) {
  const absl::StatusOr<JobSpec> job = ParseJob(text, TestOptions());
  EXPECT_TRUE(job.ok()) << job.status() << "\nin:\n" << text;
  return job.ok() ? *job : JobSpec{};
}

// "" when the text is right.
inline std::string MistakesOf(absl::string_view text) {
  return std::string(ParseJob(text, TestOptions()).status().message());
}

}  // namespace muster
