#include "cli/checkpoint/target.h"

#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/files/temporary_folder.h"
#include "base/status_macros.h"
#include "checkpoint/format.h"
#include "checkpoint/remote.h"
#include "jobs/find/lookup.h"
#include "storage/url.h"

namespace muster::cli {

namespace fs = std::filesystem;

// A remote model dir, with a local folder for downloaded checkpoints.
class RemoteModelDir {
 public:
  RemoteModelDir(const storage::Url& url, base::TemporaryFolder folder)
      : store_(storage_, url), folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_.path(); }
  checkpoint::RemoteStore& store() { return store_; }

 private:
  storage::Storage storage_;
  checkpoint::RemoteStore store_;
  const base::TemporaryFolder folder_;
};

namespace {

// Accepts a model dir, its folder of checkpoints, or one checkpoint.
absl::StatusOr<CheckpointTarget> RemoteTarget(const std::string& place) {
  MUSTER_ASSIGN_OR_RETURN(storage::Url url, storage::ParseUrl(place));
  while (absl::EndsWith(url.name, "/")) url.name.pop_back();
  const auto step = checkpoint::ParseStepFolder(url.Basename());
  if (step.has_value()) url.name.resize(url.name.rfind('/'));
  if (url.Basename() == checkpoint::kFolder) {
    const size_t slash = url.name.rfind('/');
    url.name.resize(slash == std::string::npos ? 0 : slash);
  }
  MUSTER_ASSIGN_OR_RETURN(base::TemporaryFolder folder, base::TemporaryFolder::Create());
  CheckpointTarget target{.name = place,
                          .remote = std::make_shared<RemoteModelDir>(url, std::move(folder))};
  target.path = target.remote->folder();
  if (!step.has_value()) return target;
  MUSTER_RETURN_IF_ERROR(target.remote->store().Fetch(*step, target.path));
  target.kind = CheckpointTarget::Kind::kCheckpoint;
  target.path = checkpoint::CheckpointPath(target.path, *step);
  return target;
}

absl::StatusOr<std::string> ModelDirOf(const job::JobRecord& job) {
  if (!job.model_dir.empty()) return job.model_dir;
  return absl::NotFoundError(absl::StrCat(job.id, " has no model_dir: it saves no checkpoints"));
}

// Resolves an argument that is not a path: a job may be named by a prefix of its name.
absl::StatusOr<std::string> ModelDirOf(Context& context, const std::string& reference) {
  const bool looks_like_path =
      absl::StrContains(reference, '/') || absl::EndsWith(reference, ".safetensors");
  if (looks_like_path) return absl::NotFoundError(absl::StrCat(reference, ": does not exist"));
  const auto job = jobs::FindJob(context.jobs(), reference);
  if (job.ok()) return ModelDirOf(*job);
  return absl::Status(job.status().code(),
                      absl::StrCat("no such path, and ", job.status().message()));
}

absl::StatusOr<CheckpointTarget> TargetIn(const std::string& model_dir) {
  if (storage::IsRemote(model_dir)) return RemoteTarget(model_dir);
  return CheckpointTarget{.name = model_dir, .path = model_dir};
}

}  // namespace

absl::StatusOr<std::vector<checkpoint::Entry>> CheckpointTarget::List() const {
  if (remote != nullptr) return remote->store().List();
  return checkpoint::List(path);
}

absl::StatusOr<checkpoint::Best> CheckpointTarget::ReadBest() const {
  return remote != nullptr ? remote->store().ReadBest() : checkpoint::ReadBest(path);
}

absl::Status CheckpointTarget::Fetch(const std::string& which) const {
  if (remote == nullptr || kind == Kind::kCheckpoint) return absl::OkStatus();
  checkpoint::RemoteStore& store = remote->store();
  MUSTER_ASSIGN_OR_RETURN(const std::vector<int64_t> steps, store.Steps());
  if (steps.empty()) return absl::NotFoundError(absl::StrCat(name, ": has no checkpoints"));
  if (which == "best") {
    MUSTER_ASSIGN_OR_RETURN(const checkpoint::Best best, store.ReadBest());
    MUSTER_RETURN_IF_ERROR(checkpoint::WriteBest(path, best));
  }
  MUSTER_ASSIGN_OR_RETURN(const auto step, checkpoint::StepOf(path, which));
  return store.Fetch(step.value_or(steps.back()), path);
}

absl::StatusOr<CheckpointTarget> FindCheckpoint(Context& context, const std::string& reference) {
  std::error_code error;
  if (storage::IsRemote(reference)) return RemoteTarget(reference);
  CheckpointTarget target{.name = reference, .path = storage::LocalPath(reference)};
  while (target.path.size() > 1 && target.path.back() == '/') target.path.pop_back();
  const bool is_there = fs::exists(target.path, error);
  if (const auto job = jobs::JobNamed(context.jobs(), reference)) {
    if (is_there && !fs::equivalent(target.path, job->model_dir, error)) {
      context.err().Note(absl::StrCat(reference, " is the job ", job->id,
                                      "; the folder of that name is ./", reference));
    }
    MUSTER_ASSIGN_OR_RETURN(const std::string model_dir, ModelDirOf(*job));
    return TargetIn(model_dir);
  }
  if (!is_there) {
    MUSTER_ASSIGN_OR_RETURN(const std::string model_dir, ModelDirOf(context, reference));
    return TargetIn(model_dir);
  }
  if (!fs::is_directory(target.path, error)) {
    target.kind = CheckpointTarget::Kind::kFile;
    return target;
  }
  const std::string name = fs::path(target.path).filename().string();
  if (fs::is_directory(base::JoinPath(target.path, checkpoint::kFolder), error)) return target;
  if (fs::exists(base::JoinPath(target.path, checkpoint::kManifestFile), error) ||
      absl::StartsWith(name, "step-")) {
    target.kind = CheckpointTarget::Kind::kCheckpoint;
  } else if (name == checkpoint::kFolder) {
    target.path = fs::absolute(target.path).parent_path().string();
  }
  return target;
}

}  // namespace muster::cli
