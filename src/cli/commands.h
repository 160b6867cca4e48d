// The commands, one file each. Every function adds its command to `app`; when the user calls it,
// its exit code goes to `exit_code`.
#pragma once

#include "cli/context.h"

namespace muster::cli {

class Command;

void AddInitCommand(Command& program, Context& context);
void AddRenderCommand(Command& program, Context& context);
void AddNotebookCommand(Command& program, Context& context);
void AddOperatorCommand(Command& program, Context& context);
void AddRunCommand(Command& program, Context& context);
void AddShowCommand(Command& program, Context& context);
void AddJobsCommand(Command& program, Context& context);
void AddLogsCommand(Command& program, Context& context);
void AddStopCommand(Command& program, Context& context);
void AddResumeCommand(Command& program, Context& context);
void AddEvaluateCommand(Command& program, Context& context);
void AddPredictCommand(Command& program, Context& context);
void AddEnvCommand(Command& program, Context& context);
void AddDataCommand(Command& program, Context& context);
void AddDoctorCommand(Command& program, Context& context);
void AddCheckpointCommand(Command& program, Context& context);
void AddStorageCommand(Command& program, Context& context);
void AddExplainCommand(Command& program, Context& context);
void AddHelpCommand(Command& program, Context& context);
void AddCompletionCommand(Command& program, Context& context);
void AddSuperviseCommand(Command& program, Context& context);
void AddVertexTaskCommand(Command& program, Context& context);

// Under `muster operator`.
void AddOperatorInstallCommand(Command& command, Context& context);

// Reports an error on standard error and gives the exit code that goes with it.
int Fail(Context& context, const absl::Status& status);

}  // namespace muster::cli
