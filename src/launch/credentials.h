// Credentials in a working directory: they stay on this machine when the directory is sent to
// others.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/variables.h"
#include "launch/submission.h"

namespace muster {

// Names of files and folders that usually hold credentials, wherever they are, as the lines of a
// .gitignore. docs/ssh.md lists them. Defined here because the agent links work_dir.cc, but not
// credentials.cc, which needs storage.
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

// The files that the environment names as this user's credentials, existing or not.
std::vector<std::string> CredentialFiles(const Variables& variables);

// FailedPrecondition when the working directory is this user's home or a folder above it, such as
// "/", and the user did not ask for that to be sent (Submission::send_home).
absl::Status CheckSendable(const Submission& submission, const Variables& variables);

}  // namespace muster
