// A job as submitted by a user: the input of a platform.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "job/job_spec.h"
#include "job/target.h"
#include "nlohmann/json.hpp"

namespace muster::job {

// Identifies the files of the working directory that tasks use (see worktree/version.h). "" means
// that there are none, or that they are unknown.
struct WorkVersion {
  std::string program;  // used by roles with a command
  std::string train;    // named in the `train` section: used by the other roles
  bool operator==(const WorkVersion&) const = default;
};

struct Submission {
  std::string id;
  JobSpec spec;
  // Path of the job file. For a job of several files, or with overrides, all of them: "a + b".
  std::string source_name;
  std::string source;       // its text, with all changes, for the diff of a later update
  std::string working_dir;  // current directory of `muster run`
  std::string trainer;      // path of muster-trainer
  absl::Time created;
  std::string resumed_from;  // id of the job it continues; "" = none
  std::optional<int64_t> resume_step;
  bool send_home = false;  // the working directory may be the user's home
  WorkVersion version;     // of the working directory when the job was started or changed
  int generation = 0;      // an update with another value restarts all tasks
  Target target;           // where it runs
};

// Returns whether `source` was generated, from several files or with overrides, so that positions
// in it match no file.
bool HasGeneratedSource(const Submission& submission);

// Returns the target if it has type T, else a default-constructed one.
template <typename T>
const T& TargetOf(const Submission& submission) {
  static const auto& kNone = *new T();
  const T* target = std::get_if<T>(&submission.target);
  return target == nullptr ? kNone : *target;
}

// Returns the target for modification. Replaces a target of another type by an empty one.
template <typename T>
T& MutableTargetOf(Submission& submission) {
  if (!std::holds_alternative<T>(submission.target)) submission.target = T();
  return std::get<T>(submission.target);
}

nlohmann::json SubmissionToJson(const Submission& submission);
// Returns DataLoss for a document that SubmissionToJson() did not write.
absl::StatusOr<Submission> SubmissionFromJson(const nlohmann::json& json);

}  // namespace muster::job
