#include "jobs/start/load.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/text/utf8.h"
#include "base/variables.h"
#include "job/format/parse.h"
#include "jobs/start/submit.h"

namespace muster::jobs {

void FillInJobId(const std::string& job_id, job::Submission& submission) {
  std::string& model_dir = submission.spec.model_dir;
  model_dir = absl::StrReplaceAll(model_dir, {{"{job_id}", job_id}});
}

absl::StatusOr<job::Submission> LoadSubmission(Service& service,
                                               const std::vector<ConfigFile>& files,
                                               const std::string& working_dir,
                                               const job::Overrides& overrides) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, MergeConfigs(files));
  // Records are JSON, which cannot represent other bytes.
  if (!base::IsUtf8(working_dir)) {
    return absl::FailedPreconditionError(
        "the name of the current directory is not valid UTF-8; run the job from another one");
  }
  std::vector<std::string> names, paths;
  for (const ConfigFile& file : files) {
    names.push_back(file.name());
    paths.push_back(file.path);
  }
  job::Submission submission;
  std::vector<std::string> warnings;
  MUSTER_ASSIGN_OR_RETURN(submission.spec,
                          job::ParseJob(text, {.file_name = absl::StrJoin(names, " + "),
                                               .working_dir = working_dir,
                                               .variables = base::ProcessVariables(),
                                               .warnings = &warnings,
                                               .overrides = overrides,
                                               .effective = &submission.source}));
  for (const std::string& warning : warnings) service.Notify(absl::StrCat("warning: ", warning));
  submission.id = NewJobId(submission.spec.name);
  for (const std::string& option : overrides.Names()) paths.push_back(option);
  submission.source_name = absl::StrJoin(paths, " + ");
  submission.working_dir = working_dir;
  submission.trainer = service.FindTrainer().value_or("muster-trainer");
  submission.created = absl::Now();
  return submission;
}

}  // namespace muster::jobs
