#include "worktree/credentials.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/users.h"
#include "storage/gs/credentials.h"

namespace muster::worktree {
namespace {

namespace fs = std::filesystem;

// Environment variables that name one file each.
constexpr const char* kFileVariables[] = {"AWS_CONFIG_FILE",
                                          "AWS_SHARED_CREDENTIALS_FILE",
                                          "AWS_WEB_IDENTITY_TOKEN_FILE",
                                          "BOTO_CONFIG",
                                          "HF_TOKEN_PATH",
                                          "NETRC",
                                          "PGPASSFILE"};

// Returns this user's home by $HOME and by the user database, which differ under sudo.
std::vector<std::string> HomesOf(const base::Variables& variables) {
  return {variables("HOME"), base::HomeOfThisUser()};
}

}  // namespace

std::vector<std::string> CredentialFiles(const base::Variables& variables) {
  std::vector<std::string> files = storage::GoogleCredentialFiles(variables);
  for (const char* name : kFileVariables) files.push_back(variables(name));
  for (const absl::string_view path : absl::StrSplit(variables("KUBECONFIG"), ':')) {
    files.emplace_back(path);
  }
  std::erase(files, "");
  return files;
}

absl::Status CheckSendable(const job::Submission& submission, const base::Variables& variables) {
  if (submission.send_home) return absl::OkStatus();
  std::error_code error;
  const std::string folder = fs::canonical(submission.working_dir, error).string();
  if (error) return absl::ErrnoToStatus(error.value(), submission.working_dir);
  bool refused = folder == "/";
  for (const std::string& home : HomesOf(variables)) {
    const std::string path = fs::weakly_canonical(home, error).string();
    if (home.empty() || error) continue;
    // The trailing '/' limits the match to whole path components.
    refused |= absl::StartsWith(absl::StrCat(path, "/"), absl::StrCat(folder, "/"));
  }
  if (!refused) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      folder, " is or contains your home folder, and all of it would be sent to other machines; ",
      "run the job from its own folder, or pass --send-home"));
}

}  // namespace muster::worktree
