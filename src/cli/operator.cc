// muster operator: what runs TFJobs in a cluster.
#include "cli/command.h"
#include "cli/commands.h"

namespace muster::cli {

void AddOperatorCommand(Command& program, Context& context) {
  Command& command = program.AddCommand("operator", "Run TFJobs in a Kubernetes cluster");
  AddOperatorInstallCommand(command, context);
  command.OnCall([&context, &command]() -> absl::StatusOr<int> {
    context.out().Print(command.Help());
    return kUsage;
  });
}

}  // namespace muster::cli
