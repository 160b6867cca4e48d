#include "jobs/start/version.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/utf8.h"
#include "base/variables.h"
#include "supervise/job_dir.h"
#include "worktree/credentials.h"

namespace muster::jobs {
namespace {

constexpr int kTries = 3;  // while files change during the read
constexpr int64_t kMaxDiffBytes = 1 << 20;

// Adds the absolute paths in the directory `root` that a train section contains.
void AddPaths(const nlohmann::json& value, const std::string& root,
              std::vector<std::string>& paths) {
  if (value.is_structured()) {
    for (const nlohmann::json& member : value) AddPaths(member, root, paths);
    return;
  }
  if (!value.is_string()) return;
  const auto& path = value.get_ref<const std::string&>();
  if (path == root || absl::StartsWith(path, absl::StrCat(root, "/"))) paths.push_back(path);
}

bool HasCommand(const job::JobSpec& spec) {
  return std::any_of(spec.roles.begin(), spec.roles.end(),
                     [](const job::RoleSpec& role) { return !role.command.empty(); });
}

absl::StatusOr<std::vector<worktree::WorkFile>> List(const Service& service,
                                                     platform::WorkDirUse use,
                                                     const job::Submission& submission) {
  const std::string& root = submission.working_dir;
  if (use == platform::WorkDirUse::kSent) {
    return worktree::ListWorkDir(
        root,
        {.home = service.home(), .keys = worktree::CredentialFiles(base::ProcessVariables())});
  }
  // Tasks share the directory and write to it, so only files that people write count.
  if (!HasCommand(submission.spec)) return std::vector<worktree::WorkFile>();
  return worktree::ListProgram(root, {service.home(), submission.spec.model_dir});
}

// Returns true for the job file of the submission, and for YAML files that look like the file of
// another job. A change to the own one is found by comparing what it describes.
bool IsJobFile(const std::string& path, const job::Submission& submission) {
  for (const absl::string_view file : absl::StrSplit(submission.source_name, " + ")) {
    if (base::AbsolutePath(file, submission.working_dir) == path) return true;
  }
  if (!absl::EndsWith(path, ".yaml") && !absl::EndsWith(path, ".yml")) return false;
  const auto text = base::ReadFile(path, kMaxDiffBytes);
  if (!text.ok()) return false;
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    if (absl::StartsWith(line, "roles:") || absl::StartsWithIgnoreCase(line, "kind: tfjob")) {
      return true;
    }
  }
  return false;
}

// Returns the files of the working directory that make up the job's version.
absl::StatusOr<worktree::Version> ReadVersion(const Service& service, platform::WorkDirUse use,
                                              const job::Submission& submission) {
  const std::string& root = submission.working_dir;
  worktree::Version version;
  MUSTER_ASSIGN_OR_RETURN(version.files, List(service, use, submission));
  std::erase_if(version.files, [&](const worktree::WorkFile& file) {
    return IsJobFile(base::JoinPath(root, file.path), submission);
  });
  if (version.files.empty()) return version;
  // The cache has the files of one listing, so each kind of listing has its own.
  const bool is_sent = use == platform::WorkDirUse::kSent;
  MUSTER_ASSIGN_OR_RETURN(
      const std::string cache,
      worktree::WorkDirCache(service.home(), is_sent ? root : absl::StrCat(root, "//program")));
  MUSTER_RETURN_IF_ERROR(worktree::HashFiles(root, version.files, cache).status());
  return version;
}

job::WorkVersion IdsOf(const worktree::Version& version, const job::Submission& submission) {
  std::vector<std::string> paths;
  AddPaths(submission.spec.train, submission.working_dir, paths);
  return {.program = version.Id(), .train = version.IdBelow(submission.working_dir, paths)};
}

worktree::VersionStore StoreOf(const job::JobRecord& job) {
  return worktree::VersionStore(supervise::JobDir(job.directory).versions());
}

std::optional<std::string> TextOf(absl::StatusOr<std::string> content) {
  if (!content.ok() || !base::IsUtf8(*content) || absl::StrContains(*content, '\0')) {
    return std::nullopt;
  }
  return *std::move(content);
}

// Returns the files in which the versions differ, with their texts; none if files were only added.
std::vector<EditedFile> Describe(const worktree::VersionStore& store,
                                 const worktree::Version& before, const worktree::Version& now,
                                 const job::Submission& running, const job::Submission& next) {
  using Kind = worktree::FileChange::Kind;
  std::vector<EditedFile> files;
  for (const worktree::FileChange& change : worktree::Compare(before, now)) {
    EditedFile edited{.change = change};
    if (change.kind != Kind::kAdded) {
      edited.before = TextOf(store.Read(running.version.program, change.path));
    }
    if (change.kind != Kind::kRemoved) {
      const std::string path = base::JoinPath(next.working_dir, change.path);
      edited.after = TextOf(base::ReadFile(path, kMaxDiffBytes));
    }
    files.push_back(std::move(edited));
  }
  // Nothing that runs can use a file that was added on its own.
  const bool only_added = std::all_of(files.begin(), files.end(), [](const EditedFile& file) {
    return file.change.kind == Kind::kAdded;
  });
  return only_added ? std::vector<EditedFile>() : files;
}

}  // namespace

std::string VersionContents(const Service& service) {
  return base::JoinPath(service.home(), "files");
}

void TakeVersion(Service& service, platform::WorkDirUse use, const job::JobRecord& job,
                 job::Submission& submission) {
  submission.version = {};
  if (use == platform::WorkDirUse::kNone) return;
  absl::Status status;
  for (int i = 0; i < kTries; ++i) {
    const auto version = ReadVersion(service, use, submission);
    status = version.status();
    if (status.ok() && version->files.empty()) return;
    if (status.ok()) {
      status = StoreOf(job).Save(submission.working_dir, *version, VersionContents(service));
    }
    if (status.ok()) {
      submission.version = IdsOf(*version, submission);
      return;
    }
    if (!absl::IsAborted(status) && !absl::IsNotFound(status)) break;
  }
  // A platform that sends the directory reports by itself that it cannot be read.
  if (use == platform::WorkDirUse::kSent) return;
  service.Notify(absl::StrCat(
      "cannot keep a copy of the program, so a task that restarts runs the files as they are ",
      "then: ", status.message()));
}

VersionChange CompareVersion(Service& service, platform::WorkDirUse use, const job::JobRecord& job,
                             const job::Submission& running, const job::Submission& next) {
  VersionChange change;
  if (use == platform::WorkDirUse::kNone) return change;
  const bool same_folder = running.working_dir == next.working_dir;
  if (same_folder) change.ids = running.version;
  auto now = ReadVersion(service, use, next);
  worktree::Version before;
  absl::Status status = now.status();
  if (status.ok() && same_folder && !running.version.program.empty()) {
    auto loaded = StoreOf(job).Load(running.version.program);
    status = loaded.status();
    if (loaded.ok()) before = *std::move(loaded);
  }
  if (!status.ok()) {
    service.Notify(absl::StrCat("cannot compare the working directory with that of ", job.id, ": ",
                                status.message()));
    return change;
  }
  // The file of the running job need not be that of the next one.
  const auto is_old_job_file = [&](const worktree::WorkFile& file) {
    return IsJobFile(base::JoinPath(running.working_dir, file.path), running);
  };
  if (same_folder) std::erase_if(now->files, is_old_job_file);
  if (!before.files.empty()) {
    change.files = Describe(StoreOf(job), before, *now, running, next);
    if (change.files.empty()) return change;
  }
  change.ids = IdsOf(*now, next);
  change.version = *std::move(now);
  return change;
}

absl::Status SaveVersion(Service& service, const job::JobRecord& job, const job::Submission& next,
                         const VersionChange& change) {
  return StoreOf(job).Save(next.working_dir, change.version, VersionContents(service));
}

void KeepOnlyVersion(const job::JobRecord& job, const job::WorkVersion& version) {
  StoreOf(job).KeepOnly(version.program);
}

}  // namespace muster::jobs
