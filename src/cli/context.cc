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
  context->registrations_ = std::move(platforms);
  jobs::OwnedService service = context->NewService();
  context->platforms_ = std::move(service.platforms);
  context->jobs_ = std::move(service.jobs);
  return context;
}

void Context::Notify(const std::string& text) {
  const absl::MutexLock lock(&notice_mutex_);
  err_.Note(text);
}

jobs::OwnedService Context::NewService() {
  const auto notify = [this](const std::string& text) { Notify(text); };
  const auto interrupted = [] { return process::HeldSignals::IsPending(SIGINT); };
  jobs::OwnedService service;
  service.platforms = std::make_unique<platform::Registry>(
      registrations_, platform::Environment{.program = program_,
                                            .home = home_,
                                            .version = MUSTER_VERSION,
                                            .notify = notify,
                                            .interrupted = interrupted});
  service.jobs = std::make_unique<jobs::Service>(
      jobs::ServiceOptions{
          .home = home_, .program = program_, .notify = notify, .interrupted = interrupted},
      *service.platforms);
  return service;
}

Context::Context() : out_(stdout), err_(stderr) {
  if (out_.is_terminal()) out_.SharesScreenWith(err_);
}

absl::Status Context::CheckWorkingDir() const {
  return working_dir_.empty() ? NoWorkingDir() : absl::OkStatus();
}

}  // namespace muster::cli
