// The commands, one file each. Every function adds its command to `app`; when the user calls it,
// its exit code goes to `exit_code`.
#pragma once

#include "cli/context.h"

namespace CLI {
class App;
}

namespace muster::cli {

void AddInitCommand(CLI::App& app, Context& context, int& exit_code);
void AddRunCommand(CLI::App& app, Context& context, int& exit_code);
void AddShowCommand(CLI::App& app, Context& context, int& exit_code);
void AddJobsCommand(CLI::App& app, Context& context, int& exit_code);
void AddLogsCommand(CLI::App& app, Context& context, int& exit_code);
void AddStopCommand(CLI::App& app, Context& context, int& exit_code);
void AddResumeCommand(CLI::App& app, Context& context, int& exit_code);
void AddEnvCommand(CLI::App& app, Context& context, int& exit_code);
void AddDoctorCommand(CLI::App& app, Context& context, int& exit_code);
void AddHelpCommand(CLI::App& app, Context& context, int& exit_code);
void AddCompletionCommand(CLI::App& app, Context& context, int& exit_code);
void AddSuperviseCommand(CLI::App& app, Context& context, int& exit_code);

// Reports an error on standard error and gives the exit code that goes with it.
int Fail(Context& context, const absl::Status& status);

}  // namespace muster::cli
