// A job as a user submitted it: what `muster run` hands to a platform.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "job/job_spec.h"
#include "job/target.h"
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
  Target target;           // where it runs
};

// Returns the target, if it is of that kind, else one with nothing set.
template <typename T>
const T& TargetOf(const Submission& submission) {
  static const auto& kNone = *new T();
  const T* target = std::get_if<T>(&submission.target);
  return target == nullptr ? kNone : *target;
}

// The same for changes: a target of another kind is replaced.
template <typename T>
T& MutableTargetOf(Submission& submission) {
  if (!std::holds_alternative<T>(submission.target)) submission.target = T();
  return std::get<T>(submission.target);
}

nlohmann::json SubmissionToJson(const Submission& submission);
// DataLoss for a document that SubmissionToJson did not write.
absl::StatusOr<Submission> SubmissionFromJson(const nlohmann::json& json);

}  // namespace muster
