// muster doctor: checks the requirements of Muster, or of one job, on this machine.
#include "jobs/check/doctor.h"

#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "base/variables.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/job/job_file.h"
#include "cli/job/target_options.h"
#include "cli/terminal/print_json.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

const char* Name(platform::Grade grade) {
  switch (grade) {
    case platform::Grade::kOk:
      return "ok";
    case platform::Grade::kWarning:
      return "warning";
    case platform::Grade::kMissing:
      return "missing";
  }
  return "";
}

struct DoctorOptions {
  std::string file;
  job::Overrides overrides;
  TargetOptions target;
  bool json = false;
};

using Findings = std::vector<platform::Finding>;

void Append(Findings more, Findings& findings) {
  std::move(more.begin(), more.end(), std::back_inserter(findings));
}

absl::Status CheckJobFile(Context& context, const std::string& file,
                          const job::Overrides& overrides, Findings& findings) {
  MUSTER_ASSIGN_OR_RETURN(const job::Submission submission, LoadJobFile(context, file, overrides));
  const auto tasks = static_cast<int64_t>(submission.spec.Tasks().size());
  findings.push_back(
      {platform::Grade::kOk, "job file", absl::StrCat(base::Plural(tasks, "task"), ", valid")});
  MUSTER_ASSIGN_OR_RETURN(Findings of_job,
                          jobs::CheckJob(context.jobs(), submission, base::ProcessVariables()));
  Append(std::move(of_job), findings);
  return absl::OkStatus();
}

// Checks the machines of each platform whose options are given.
absl::Status CheckTargets(Context& context, const TargetOptions& target, Findings& findings) {
  for (const std::string& name : context.platforms().names()) {
    const platform::Options* options = target.Of(name);
    if (options == nullptr || options->FirstGiven().empty()) continue;
    MUSTER_ASSIGN_OR_RETURN(Findings of_target,
                            jobs::CheckTarget(context.jobs(), options->ToTarget()));
    Append(std::move(of_target), findings);
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Doctor(Context& context, const DoctorOptions& options) {
  Findings findings = jobs::CheckMachine(context.jobs());
  if (options.file.empty()) {
    MUSTER_RETURN_IF_ERROR(
        CheckNoOverrides(options.overrides, "the job file is missing; usage: muster doctor FILE"));
    findings.push_back(jobs::CheckMemory(nullptr));
  } else {
    MUSTER_RETURN_IF_ERROR(CheckJobFile(context, options.file, options.overrides, findings));
  }
  MUSTER_RETURN_IF_ERROR(CheckTargets(context, options.target, findings));
  Terminal& out = context.out();
  Table table({"CHECK", "RESULT", "DETAIL"});
  nlohmann::json json = nlohmann::json::array();
  bool missing = false;
  for (const platform::Finding& finding : findings) {
    const Style style = finding.grade == platform::Grade::kOk        ? Style::kGreen
                        : finding.grade == platform::Grade::kWarning ? Style::kYellow
                                                                     : Style::kRed;
    missing |= finding.grade == platform::Grade::kMissing;
    table.Add({finding.subject, out.Paint(style, Name(finding.grade)), finding.detail});
    json.push_back(
        {{"check", finding.subject}, {"result", Name(finding.grade)}, {"detail", finding.detail}});
  }
  if (options.json) {
    PrintJson(out, json);
  } else {
    out.Print(table.Render(out));
  }
  return missing ? kFailure : kSuccess;
}

}  // namespace

void AddDoctorCommand(Command& program, Context& context) {
  Command& command = program.AddCommand(
      "doctor", "Check that this machine, or a job's machines, meet the requirements");
  auto options = std::make_shared<DoctorOptions>();
  command.Argument("FILE", &options->file, "The job file (default: check the machine only)");
  AddOverrideOptions(command, &options->overrides);
  options->target.AddWithoutPlatformTo(command, context, platform::OptionUse::kDoctor);
  command.Flag("--json", &options->json, "Print JSON");
  command.OnCall([&context, options] { return Doctor(context, *options); });
}

}  // namespace muster::cli
