// muster explain: lists the features of a job that a platform does not support.
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/print_json.h"
#include "cli/submit.h"

namespace muster::cli {
namespace {

struct ExplainOptions {
  std::string file;
  std::string platform = "local";
  bool json = false;
};

absl::StatusOr<int> Explain(Context& context, const ExplainOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const Platform* platform, context.platform(options.platform));
  MUSTER_ASSIGN_OR_RETURN(const Submission submission, LoadSubmission(context, options.file));
  std::vector<std::string> dropped, refused, all;
  for (const Limit& limit : platform->Unsupported(submission)) {
    (limit.fatal ? refused : dropped).push_back(limit.what);
    all.push_back(limit.what);
  }
  Terminal& out = context.out();
  if (options.json) {
    PrintJson(out, nlohmann::json(all));
    return kSuccess;
  }
  if (all.empty()) {
    out.PrintLine(
        absl::StrCat(options.platform, " does all that '", submission.spec.name, "' asks for."));
    return kSuccess;
  }
  if (!refused.empty()) {
    out.PrintLine(
        absl::StrCat("'", submission.spec.name, "' cannot run on ", options.platform, ":"));
    for (const std::string& line : refused) out.PrintLine(absl::StrCat("  ", line));
  }
  if (!dropped.empty()) {
    out.PrintLine(absl::StrCat("Of what '", submission.spec.name, "' asks for, ", options.platform,
                               " does not do:"));
    for (const std::string& line : dropped) out.PrintLine(absl::StrCat("  ", line));
  }
  return kSuccess;
}

}  // namespace

void AddExplainCommand(Command& program, Context& context) {
  Command& command =
      program.AddCommand("explain", "List what a platform does not do of what a job asks for");
  auto options = std::make_shared<ExplainOptions>();
  command.Argument("FILE", &options->file, "The job file; - reads standard input",
                   Presence::kRequired);
  command.Option("--on", &options->platform, "The platform", context.platform_names());
  command.Flag("--json", &options->json, "Print JSON");
  command.OnCall([&context, options] { return Explain(context, *options); });
}

}  // namespace muster::cli
