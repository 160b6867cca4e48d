#include "jobs/service.h"

#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "process/spawn.h"

namespace muster::jobs {
namespace {

constexpr char kTrainer[] = "muster-trainer";

}  // namespace

absl::StatusOr<history::History*> Service::history() {
  if (history_ == nullptr) {
    history::HistoryOptions options;
    options.notice = [this](absl::string_view text) { Notify(std::string(text)); };
    MUSTER_ASSIGN_OR_RETURN(history_, history::History::Open(options_.home, options));
  }
  return history_.get();
}

absl::StatusOr<std::string> Service::FindProgram(const std::string& name) const {
  const std::filesystem::path folder = std::filesystem::path(options_.program).parent_path();
  const std::string beside = (folder / name).string();
  if (::access(beside.c_str(), X_OK) == 0) return beside;
  auto found = process::FindProgram(name, process::CurrentEnvironment(), "");
  if (found.ok()) return found;
  return absl::NotFoundError(absl::StrCat(name, " is neither beside muster nor in PATH"));
}

absl::StatusOr<std::string> Service::FindTrainer() const {
  auto found = FindProgram(kTrainer);
  if (found.ok()) return found;
  return absl::NotFoundError(
      "a role without a `command` is run by the built-in trainer, but muster-trainer is neither "
      "beside muster nor in PATH; install it, or give the roles a command");
}

}  // namespace muster::jobs
