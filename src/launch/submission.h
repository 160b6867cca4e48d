// A job as a user submitted it: what `muster run` hands to a platform.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "job/job_spec.h"
#include "nlohmann/json.hpp"

namespace muster {

struct Submission {
  std::string id;
  JobSpec spec;
  std::string source_name;  // path of the job file
  std::string source;       // its text, kept for the next diff
  std::string working_dir;  // where `muster run` was called
  std::string trainer;      // path of muster-trainer
  absl::Time created;
  std::string resumed_from;  // id of the job it continues; "" = none
  std::optional<int64_t> resume_step;
  bool send_home = false;  // the working directory may be the user's home
  nlohmann::json place;    // where on its platform, in the platform's own words; null = it has one
};

nlohmann::json SubmissionToJson(const Submission& submission);
// DataLoss for a document that SubmissionToJson did not write.
absl::StatusOr<Submission> SubmissionFromJson(const nlohmann::json& json);

}  // namespace muster
