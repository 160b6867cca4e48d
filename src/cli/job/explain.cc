// muster explain: lists the features of a job that a platform does not support.
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/job/job_file.h"
#include "cli/terminal/print_json.h"
#include "platform/capabilities.h"

namespace muster::cli {
namespace {

struct ExplainOptions {
  std::string file;
  std::string platform;
  job::Overrides overrides;
  bool json = false;
};

absl::StatusOr<int> Explain(Context& context, const ExplainOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(platform::Platform * platform, context.jobs().platform(options.platform));
  MUSTER_ASSIGN_OR_RETURN(const job::Submission submission,
                          LoadJobFile(context, options.file, options.overrides));
  std::vector<std::string> dropped, refused, all;
  for (const platform::Limit& limit : platform->Unsupported(submission)) {
    (limit.fatal ? refused : dropped).push_back(limit.what);
    all.push_back(limit.what);
  }
  std::string files;  // that would be sent
  if (const auto* selection = platform::CapabilityOf<platform::FileSelection>(*platform)) {
    MUSTER_ASSIGN_OR_RETURN(files, selection->DescribeFiles(submission));
  }
  Terminal& out = context.out();
  if (options.json) {
    PrintJson(out, nlohmann::json(all));
    return kSuccess;
  }
  if (all.empty()) {
    out.PrintLine(
        absl::StrCat(options.platform, " supports all settings of '", submission.spec.name, "'."));
  }
  if (!refused.empty()) {
    out.PrintLine(
        absl::StrCat("'", submission.spec.name, "' cannot run on ", options.platform, ":"));
    for (const std::string& line : refused) out.PrintLine(absl::StrCat("  ", line));
  }
  if (!dropped.empty()) {
    out.PrintLine(absl::StrCat(options.platform, " does not support these settings of '",
                               submission.spec.name, "':"));
    for (const std::string& line : dropped) out.PrintLine(absl::StrCat("  ", line));
  }
  if (!files.empty()) out.PrintLine(files);
  return kSuccess;
}

}  // namespace

void AddExplainCommand(Command& program, Context& context) {
  Command& command =
      program.AddCommand("explain", "List the settings of a job that a platform does not support");
  auto options = std::make_shared<ExplainOptions>();
  command.Argument("FILE", &options->file, "The job file; - reads standard input",
                   Presence::kRequired);
  AddOverrideOptions(command, &options->overrides);
  const std::vector<std::string> names = context.platforms().names();
  options->platform = names.front();
  command.Option("--on", &options->platform, "The platform", names);
  command.Flag("--json", &options->json, "Print JSON");
  command.OnCall([&context, options] { return Explain(context, *options); });
}

}  // namespace muster::cli
