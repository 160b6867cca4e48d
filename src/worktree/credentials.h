// Keeps credentials out of a working directory that is sent to other machines.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/variables.h"
#include "job/submission.h"

namespace muster::worktree {

// Patterns, in the syntax of .gitignore, of files and folders that usually contain credentials.
// docs/ssh.md lists them. Defined in this header because the agent links worktree.cc but not
// credentials.cc, which depends on storage.
inline constexpr char kCredentialPatterns[] =
    ".aws\n"
    ".azure\n"
    ".boto\n"
    "**/.cache/huggingface\n"
    "**/.cargo/credentials\n"
    "**/.cargo/credentials.toml\n"
    "**/.config/gcloud\n"
    "**/.config/gh\n"
    "**/.config/rclone\n"
    ".databrickscfg\n"
    ".docker\n"
    ".dockercfg\n"
    ".env\n"
    ".env.*\n"
    "!.env.dist\n"
    "!.env.example\n"
    "!.env.sample\n"
    "!.env.template\n"
    ".envrc\n"
    ".git-credentials\n"
    ".gnupg\n"
    ".huggingface\n"
    ".kaggle\n"
    ".kube\n"
    "**/.local/share/keyrings\n"
    ".modal.toml\n"
    ".netrc\n"
    "_netrc\n"
    ".npmrc\n"
    ".oci\n"
    ".password-store\n"
    ".pgpass\n"
    ".pypirc\n"
    ".s3cfg\n"
    ".ssh\n"
    "**/.streamlit/secrets.toml\n"
    ".vault-token\n"
    "application_default_credentials.json\n"
    "id_dsa\n"
    "id_ecdsa\n"
    "id_ecdsa_sk\n"
    "id_ed25519\n"
    "id_ed25519_sk\n"
    "id_rsa\n";

// Returns the credential files that environment variables name, whether or not they exist.
std::vector<std::string> CredentialFiles(const base::Variables& variables);

// Returns FailedPrecondition if the working directory is this user's home or a parent of it, such
// as "/", unless Submission::send_home is set.
absl::Status CheckSendable(const job::Submission& submission, const base::Variables& variables);

}  // namespace muster::worktree
