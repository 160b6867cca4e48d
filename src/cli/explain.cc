// muster explain: what a platform does not do of what a job asks for.
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cli/command.h"
#include "cli/commands.h"
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
  const std::vector<std::string> lines = platform->Unsupported(submission.spec);
  Terminal& out = context.out();
  if (options.json) {
    out.PrintLine(
        nlohmann::json(lines).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return kSuccess;
  }
  if (lines.empty()) {
    out.PrintLine(
        absl::StrCat(options.platform, " does all that '", submission.spec.name, "' asks for."));
    return kSuccess;
  }
  out.PrintLine(absl::StrCat("Of what '", submission.spec.name, "' asks for, ", options.platform,
                             " does not do:"));
  for (const std::string& line : lines) out.PrintLine(absl::StrCat("  ", line));
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
