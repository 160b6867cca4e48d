#include "cli/job/job_file.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "job/format/parse.h"
#include "jobs/find/lookup.h"
#include "jobs/start/load.h"

namespace muster::cli {
namespace {

absl::StatusOr<std::string> ReadJobFile(const std::string& path) {
  if (path != "-") return base::ReadFile(path, job::kMaxJobFileBytes);
  return base::ReadAll(STDIN_FILENO, job::kMaxJobFileBytes);
}

}  // namespace

void AddOverrideOptions(Command& command, job::Overrides* overrides) {
  command.Option("--set", &overrides->set,
                 "Override a value of the file: PATH=VALUE, such as train.steps=100");
  command.Option("--env", &overrides->env, "Set a variable of every task: KEY=VALUE");
  command.Option("--name", &overrides->name, "The name of the job, instead of the file's");
  command.Rest("ARGUMENTS", &overrides->arguments, "Appended to the commands of the file's roles");
}

absl::StatusOr<job::Submission> LoadJobFiles(Context& context,
                                             const std::vector<std::string>& paths,
                                             const job::Overrides& overrides) {
  MUSTER_RETURN_IF_ERROR(context.CheckWorkingDir());
  std::vector<jobs::ConfigFile> files;
  for (const std::string& path : paths) {
    auto text = ReadJobFile(path);
    if (!text.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot read the job file: ", text.status().message()));
    }
    files.push_back({path, *std::move(text)});
  }
  return jobs::LoadSubmission(context.jobs(), files, context.working_dir(), overrides);
}

absl::StatusOr<job::Submission> LoadJobFile(Context& context, const std::string& path,
                                            const job::Overrides& overrides) {
  MUSTER_ASSIGN_OR_RETURN(job::Submission submission, LoadJobFiles(context, {path}, overrides));
  jobs::FillInJobId(submission.spec.name, submission);
  return submission;
}

absl::Status CheckNoOverrides(const job::Overrides& overrides, const std::string& why) {
  if (overrides.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cannot apply ", overrides.Names().front(), ": ", why));
}

bool IsFile(Context& context, const std::string& reference) {
  std::error_code error;
  if (reference == "-") return true;
  return std::filesystem::exists(reference, error) && !jobs::JobNamed(context.jobs(), reference);
}

}  // namespace muster::cli
