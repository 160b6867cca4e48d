#include "cli/context.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/users.h"
#include "process/held_signals.h"

namespace muster::cli {
namespace {

absl::Status NoWorkingDir() {
  return absl::FailedPreconditionError("the current directory no longer exists");
}

absl::StatusOr<std::string> HomeFromEnvironment(const std::string& working_dir) {
  if (const char* home = std::getenv("MUSTER_HOME"); home != nullptr && *home != '\0') {
    if (*home != '/' && working_dir.empty()) return NoWorkingDir();
    return base::AbsolutePath(home, working_dir);
  }
  if (const char* data = std::getenv("XDG_DATA_HOME"); data != nullptr && *data == '/') {
    return base::JoinPath(data, "muster");
  }
  const char* variable = std::getenv("HOME");
  const std::string home =
      variable == nullptr || *variable == '\0' ? base::HomeOfThisUser() : variable;
  if (home.empty()) {
    return absl::FailedPreconditionError("no home directory: set HOME or MUSTER_HOME");
  }
  return base::JoinPath(home, ".local/share/muster");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Context>> Context::FromEnvironment(
    std::vector<platform::Registration> platforms) {
  std::unique_ptr<Context> context(new Context);
  std::error_code error;
  context->working_dir_ = std::filesystem::current_path(error).string();
  context->program_ = std::filesystem::read_symlink("/proc/self/exe", error).string();
  MUSTER_ASSIGN_OR_RETURN(context->home_, HomeFromEnvironment(context->working_dir_));
  const auto notify = [self = context.get()](const std::string& text) {
    const absl::MutexLock lock(&self->notice_mutex_);
    self->err_.Note(text);
  };
  const auto interrupted = [] { return process::HeldSignals::IsPending(SIGINT); };
  context->platforms_ = std::make_unique<platform::Registry>(
      std::move(platforms), platform::Environment{.program = context->program_,
                                                  .home = context->home_,
                                                  .version = MUSTER_VERSION,
                                                  .notify = notify,
                                                  .interrupted = interrupted});
  context->jobs_ =
      std::make_unique<jobs::Service>(jobs::ServiceOptions{.home = context->home_,
                                                           .program = context->program_,
                                                           .notify = notify,
                                                           .interrupted = interrupted},
                                      *context->platforms_);
  return context;
}

Context::Context() : out_(stdout), err_(stderr) {
  if (out_.is_terminal()) out_.SharesScreenWith(err_);
}

absl::Status Context::CheckWorkingDir() const {
  return working_dir_.empty() ? NoWorkingDir() : absl::OkStatus();
}

}  // namespace muster::cli
