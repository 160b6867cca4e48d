#include "platform/kubernetes/work_files.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/bytes/digest.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/terminal_text.h"
#include "base/text/units.h"
#include "base/variables.h"
#include "worktree/archive.h"
#include "worktree/command_files.h"
#include "worktree/credentials.h"

namespace muster::kubernetes {
namespace {

using Json = nlohmann::json;

// The API server accepts ConfigMaps of 1 MiB. The database of a cluster holds 2 GiB by default, for
// all jobs together.
constexpr size_t kPartBytes = 960 << 10;
constexpr worktree::WorkDirLimits kLimits = {.max_bytes = 8 << 20, .max_files = 10'000};
constexpr size_t kDigestDigits = 16;
constexpr char kImageRemedy[] =
    "build an image with the program, and set `kubernetes: {container: {workingDir: …}}` to its "
    "folder there";

bool SetsWorkingDir(const Json& fragments) {
  return fragments.is_object() &&
         fragments.value("container", Json::object()).contains("workingDir");
}

// Returns why pods of the role do not run in the working directory; "" if they do.
std::string WhyElsewhere(const job::Submission& submission, const job::RoleSpec& role) {
  if (submission.spec.format != job::JobFormat::kNative || !role.pod.is_null()) {
    return "a manifest describes its pods completely";
  }
  if (SetsWorkingDir(submission.spec.kubernetes) || SetsWorkingDir(role.kubernetes)) {
    return "its container has a 'workingDir', a folder of the image";
  }
  if (!worktree::FolderBelow(submission.working_dir, role)) {
    return absl::StrCat("its working_dir, ", role.working_dir, ", is a folder of the image");
  }
  return "";
}

std::string Named(const std::vector<std::string>& paths) {
  return absl::StrJoin(paths, ", ", [](std::string* out, const std::string& path) {
    absl::StrAppend(out, base::Printable(path));
  });
}

// Returns true if the listing contains the path, or files below it.
bool Contains(const std::vector<worktree::WorkFile>& files, const std::string& path) {
  return path == "." || std::any_of(files.begin(), files.end(), [&](const auto& file) {
           return file.path == path || absl::StartsWith(file.path, absl::StrCat(path, "/"));
         });
}

absl::Status CheckNames(const std::vector<worktree::WorkFile>& files) {
  for (const worktree::WorkFile& file : files) {
    if (worktree::FitsUstar(file)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(base::Printable(file.path), " has a name or a link target that is too long ",
                     "for the tar of some images (100 bytes per name); shorten it, or list the ",
                     "file in .gitignore"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Pack(const std::string& root,
                                 const std::vector<worktree::WorkFile>& files) {
  std::string packed;
  worktree::Gzip gzip([&packed](absl::string_view bytes) {
    packed.append(bytes.data(), bytes.size());
    return absl::OkStatus();
  });
  MUSTER_RETURN_IF_ERROR(worktree::WriteTar(
      root, files, [&gzip](absl::string_view bytes) { return gzip.Write(bytes); }));
  MUSTER_RETURN_IF_ERROR(gzip.Finish());
  return packed;
}

}  // namespace

SelectedFiles SelectFiles(const job::Submission& submission) {
  SelectedFiles selected;
  const std::string& root = submission.working_dir;
  for (const job::RoleSpec& role : submission.spec.roles) {
    if (role.command.empty()) continue;
    const std::vector<std::string> here = worktree::AbsolutePathsNamedBy(role, root);
    if (!here.empty()) {
      selected.limits.push_back({platform::RoleLimit(
          role, "command",
          absl::StrCat(Named(here),
                       ": a path of this machine, which pods do not have; write it relative to ",
                       root))});
    }
    const std::vector<std::string> named = worktree::FilesNamedBy(role, root);
    if (named.empty()) continue;
    const std::string why = WhyElsewhere(submission, role);
    if (why.empty()) {
      selected.roles.push_back(role.name);
    } else {
      selected.limits.push_back({platform::RoleLimit(
          role, "command",
          absl::StrCat(Named(named), ": not sent from this directory, because ", why))});
    }
  }
  return selected;
}

std::string PackedFiles::Describe(const std::string& directory) const {
  return absl::StrCat(base::Plural(files, "file"), " (", base::FormatBytes(bytes), ") of ",
                      directory, " to ", absl::StrJoin(sent.roles, ", "));
}

std::string PackedFiles::DescribeLeftOut() const {
  if (left_out.empty()) return "";
  return absl::StrCat(Named(left_out),
                      ": not sent, although a command names it; .gitignore or the ",
                      "rules for credentials leave it out");
}

absl::StatusOr<PackedFiles> PackFiles(const job::Submission& submission,
                                      const std::vector<std::string>& roles,
                                      const worktree::Withheld& withheld) {
  PackedFiles packed;
  if (roles.empty()) return packed;
  const std::string& root = submission.working_dir;
  MUSTER_RETURN_IF_ERROR(worktree::CheckSendable(submission, base::ProcessVariables()));
  auto files = worktree::ListWorkDir(root, withheld, kLimits);
  if (absl::IsResourceExhausted(files.status())) {
    return absl::ResourceExhaustedError(
        absl::StrCat(files.status().message(), "; or ", kImageRemedy));
  }
  MUSTER_RETURN_IF_ERROR(files.status());
  MUSTER_RETURN_IF_ERROR(CheckNames(*files));
  MUSTER_RETURN_IF_ERROR(worktree::HashFiles(root, *files, "").status());
  MUSTER_ASSIGN_OR_RETURN(const std::string archive, Pack(root, *files));
  for (size_t at = 0; at < archive.size(); at += kPartBytes) {
    packed.parts.push_back(archive.substr(at, kPartBytes));
  }
  packed.sent = {.digest = base::Sha256Hex(archive).substr(0, kDigestDigits),
                 .parts = static_cast<int>(packed.parts.size()),
                 .roles = roles};
  packed.files = static_cast<int64_t>(files->size());
  for (const worktree::WorkFile& file : *files) packed.bytes += file.size;
  for (const std::string& role : roles) {
    for (std::string& path : worktree::FilesNamedBy(*submission.spec.FindRole(role), root)) {
      if (!Contains(*files, path)) packed.left_out.push_back(std::move(path));
    }
  }
  return packed;
}

}  // namespace muster::kubernetes
