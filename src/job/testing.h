// Shared by the tests of job files.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "job/format/parse.h"

namespace muster::job {

inline ParseJobOptions TestOptions() {
  return {.file_name = "job.yaml",
          .working_dir = "/home/me",
          .variables = [](const std::string& name) -> std::string {
            if (name == "HOME") return "/home/me";
            return name == "DATA" ? "/mnt/data" : "";
          }};
}

inline JobSpec MustParse(absl::string_view text) {
  const absl::StatusOr<JobSpec> job = ParseJob(text, TestOptions());
  EXPECT_TRUE(job.ok()) << job.status() << "\nin:\n" << text;
  return job.ok() ? *job : JobSpec{};
}

// Returns the mistakes in the text, or "" if it is valid.
inline std::string MistakesOf(absl::string_view text) {
  return std::string(ParseJob(text, TestOptions()).status().message());
}

}  // namespace muster::job
