#include "cli/context.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "cli/attach.h"
#include "cli/cluster.h"
#include "platform/kubernetes/platform.h"
#include "platform/local/platform.h"
#include "platform/ssh/platform.h"
#include "platform/vertex/platform.h"
#include "process/spawn.h"

namespace muster::cli {
namespace {

constexpr char kTrainer[] = "muster-trainer";

absl::Status NoWorkingDir() {
  return absl::FailedPreconditionError("the current directory does not exist any more");
}

absl::StatusOr<std::string> HomeFromEnvironment(const std::string& working_dir) {
  if (const char* home = std::getenv("MUSTER_HOME"); home != nullptr && *home != '\0') {
    if (*home != '/' && working_dir.empty()) return NoWorkingDir();
    return AbsolutePath(home, working_dir);
  }
  if (const char* data = std::getenv("XDG_DATA_HOME"); data != nullptr && *data == '/') {
    return JoinPath(data, "muster");
  }
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') {
    const passwd* user = ::getpwuid(::getuid());
    home = user == nullptr ? nullptr : user->pw_dir;
  }
  if (home == nullptr) {
    return absl::FailedPreconditionError("no home directory: set HOME or MUSTER_HOME");
  }
  return JoinPath(home, ".local/share/muster");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Context>> Context::FromEnvironment() {
  std::unique_ptr<Context> context(new Context);
  std::error_code error;
  context->working_dir_ = std::filesystem::current_path(error).string();
  context->program_ = std::filesystem::read_symlink("/proc/self/exe", error).string();
  MUSTER_ASSIGN_OR_RETURN(context->home_, HomeFromEnvironment(context->working_dir_));
  return context;
}

Context::Context() : out_(stdout), err_(stderr) {
  if (out_.is_terminal()) out_.SharesScreenWith(err_);
}

Context::~Context() = default;

absl::Status Context::CheckWorkingDir() const {
  return working_dir_.empty() ? NoWorkingDir() : absl::OkStatus();
}

absl::StatusOr<History*> Context::history() {
  if (history_ == nullptr) {
    HistoryOptions options;
    options.notice = [this](absl::string_view text) { err_.Note(std::string(text)); };
    MUSTER_ASSIGN_OR_RETURN(history_, History::Open(home_, options));
  }
  return history_.get();
}

absl::StatusOr<Platform*> Context::platform(const std::string& name) {
  if (name == "local") {
    if (local_ == nullptr) local_ = std::make_unique<local::LocalPlatform>(program_, home_);
    return local_.get();
  }
  if (name == "ssh") {
    if (ssh_ == nullptr) {
      ssh_ = std::make_unique<ssh::SshPlatform>(
          ssh::SshOptions{.program = program_,
                          .home = home_,
                          .notice =
                              [this](const std::string& text) {
                                const absl::MutexLock lock(&notice_mutex_);
                                err_.Note(text);
                              },
                          .interrupted = HeldInterrupts::Any});
    }
    return ssh_.get();
  }
  if (name == "kubernetes") {
    if (kubernetes_ == nullptr) {
      kubernetes_ = std::make_unique<kubernetes::KubernetesPlatform>(kubernetes::PlatformOptions{
          .trainer_image = TrainerImage(),
          .notebook_image = kNotebookImage,
          .warn = [this](const std::string& text) { err_.Note(text); }});
    }
    return kubernetes_.get();
  }
  if (name == "vertex") return &vertex();
  return absl::InvalidArgumentError(
      absl::StrCat("unknown platform '", name, "'; this version runs on: ",
                   absl::StrJoin(platform_names(), ", "), DidYouMean(name, platform_names())));
}

vertex::VertexPlatform& Context::vertex() {
  if (vertex_ == nullptr) {
    vertex_ = std::make_unique<vertex::VertexPlatform>(vertex::PlatformOptions{
        .version = MUSTER_VERSION, .home = home_, .note = [this](const std::string& text) {
          err_.Note(text);
        }});
  }
  return *vertex_;
}

absl::StatusOr<std::string> Context::FindTrainer() const {
  const std::string beside = (std::filesystem::path(program_).parent_path() / kTrainer).string();
  if (::access(beside.c_str(), X_OK) == 0) return beside;
  auto found = FindProgram(kTrainer, CurrentEnvironment(), "");
  if (found.ok()) return found;
  return absl::NotFoundError(
      "a role without a `command` is run by the built-in trainer, but muster-trainer is neither "
      "beside "
      "muster nor in PATH; install it, or give the roles a command");
}

}  // namespace muster::cli
