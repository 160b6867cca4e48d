// The commands, each implemented in a file of its own.
#pragma once

#include "cli/context.h"

namespace muster::cli {

class Command;

// Each function adds one command to `program`, the root. `context` must outlive `program`.
void AddInitCommand(Command& program, Context& context);
void AddRenderCommand(Command& program, Context& context);
void AddNotebookCommand(Command& program, Context& context);
void AddOperatorCommand(Command& program, Context& context);
void AddRunCommand(Command& program, Context& context);
void AddShowCommand(Command& program, Context& context);
void AddJobsCommand(Command& program, Context& context);
void AddLogsCommand(Command& program, Context& context);
void AddStopCommand(Command& program, Context& context);
void AddTopCommand(Command& program, Context& context);
void AddWaitCommand(Command& program, Context& context);
void AddCompareCommand(Command& program, Context& context);
void AddResumeCommand(Command& program, Context& context);
void AddEvaluateCommand(Command& program, Context& context);
void AddPredictCommand(Command& program, Context& context);
void AddEnvCommand(Command& program, Context& context);
void AddDashboardCommand(Command& program, Context& context);
void AddDataCommand(Command& program, Context& context);
void AddDoctorCommand(Command& program, Context& context);
void AddCheckpointCommand(Command& program, Context& context);
void AddStorageCommand(Command& program, Context& context);
void AddExplainCommand(Command& program, Context& context);
void AddHelpCommand(Command& program, Context& context);
void AddCompletionCommand(Command& program, Context& context);
void AddSuperviseCommand(Command& program, Context& context);

// Adds `install` to `command`, which is `muster operator`.
void AddOperatorInstallCommand(Command& command, Context& context);

// Flushes standard output and prints the error to standard error. Returns kUsage for
// InvalidArgument, kFailure otherwise. REQUIRES: !status.ok().
int Fail(Context& context, const absl::Status& status);

}  // namespace muster::cli
