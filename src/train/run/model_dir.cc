// The working folder of a URL outlives the process if files could not be sent:
//
//    Open      files left by an earlier process: unsent_, rest_unsent_ = true
//    Fetch     sends checkpoints newer than the storage's, then fetches the newest: unsent_ = false
//    Publish   unsent_ = true until the checkpoint is sent
//    SendRest  rest_unsent_ = true until all other changed files are sent
//    ~ModelDir removes the folder if neither is true
//
// The lock of kOwnerFile is held from Open() on, so two processes never share a working folder.
#include "train/run/model_dir.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/bytes/digest.h"
#include "base/files/cache_folder.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "checkpoint/format.h"
#include "checkpoint/store.h"
#include "storage/copy.h"
#include "storage/local_copy.h"
#include "train/run/peer.h"

namespace muster::train {
namespace {

namespace fs = std::filesystem;

constexpr char kResumedFile[] =
    "resumed";                           // contains the job for which checkpoints were moved aside
constexpr char kOwnerFile[] = ".owner";  // locked while the process of a working folder runs
constexpr absl::Duration kOwnerTimeout = absl::Seconds(10);  // for an earlier attempt to end
constexpr absl::Duration kLeftoverAge = absl::Hours(30 * 24);
constexpr int kHashDigits = 16;

std::string BestFile() { return base::JoinPath(checkpoint::kFolder, checkpoint::kBestFile); }

std::string RunsFolder() { return base::JoinPath(storage::CacheFolder(), "runs"); }

// Returns the name of a task's working folder: the same for every attempt and every job of the
// model dir, so that a later run finds files that could not be sent.
std::string FolderName(const std::string& place, const Environment& environment) {
  return absl::StrCat(base::Sha256Hex(place).substr(0, kHashDigits), "-", environment.self.role,
                      "-", environment.self.index);
}

// Removes working folders that were not used for kLeftoverAge.
void SweepLeftovers(const std::string& own) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(RunsFolder(), error)) {
    const std::string owner = base::JoinPath(entry.path().string(), kOwnerFile);
    struct stat info {};
    if (entry.path().filename() == own || ::stat(owner.c_str(), &info) != 0) continue;
    if (absl::Now() - absl::TimeFromTimespec(info.st_mtim) < kLeftoverAge) continue;
    // A process that started long ago may still hold its folder: its lock decides, not the age.
    const auto lock = base::FileLock::Try(owner);
    if (lock.ok() && lock->has_value()) fs::remove_all(entry.path(), error);
  }
}

// Returns the files that an earlier process left in a working folder.
std::vector<fs::path> LeftIn(const std::string& folder) {
  std::vector<fs::path> left;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename() != kOwnerFile) left.push_back(entry.path());
  }
  return left;
}

// Returns whether SendRest() sends the file: neither a checkpoint nor internal.
bool IsRest(const std::string& name) {
  const std::string base = fs::path(name).filename().string();
  if (absl::StartsWith(base, ".") || name == kResumedFile) return false;
  return !absl::StartsWith(name, absl::StrCat(checkpoint::kFolder, "/step-"));
}

}  // namespace

ModelDir::ModelDir(std::string place, std::string folder, const Environment& environment, Log log)
    : place_(std::move(place)),
      folder_(std::move(folder)),
      environment_(environment),
      log_(std::move(log)) {}

ModelDir::~ModelDir() {
  if (!is_remote()) return;
  if (unsent_ || rest_unsent_) {
    log_(absl::StrCat("files that could not be sent to ", place_, " are in ", folder_,
                      "; the next job with this model_dir on this machine sends them"));
    return;
  }
  std::error_code error;
  fs::remove_all(folder_, error);
}

absl::StatusOr<std::unique_ptr<ModelDir>> ModelDir::Open(const std::string& place,
                                                         const Environment& environment, Log log) {
  if (!storage::IsRemote(place)) {
    return std::unique_ptr<ModelDir>(
        new ModelDir(place, storage::LocalPath(place), environment, std::move(log)));
  }
  MUSTER_ASSIGN_OR_RETURN(const storage::Url url, storage::ParseUrl(place));
  const std::string name = FolderName(place, environment);
  SweepLeftovers(name);
  std::unique_ptr<ModelDir> dir(
      new ModelDir(place, base::JoinPath(RunsFolder(), name), environment, std::move(log)));
  MUSTER_RETURN_IF_ERROR(dir->MakeRemote(url));
  return dir;
}

absl::Status ModelDir::MakeRemote(const storage::Url& url) {
  MUSTER_RETURN_IF_ERROR(storage_.For(url).status());
  MUSTER_RETURN_IF_ERROR(base::MakeTrustedFolder(folder_));
  const std::string owner = base::JoinPath(folder_, kOwnerFile);
  MUSTER_ASSIGN_OR_RETURN(lock_, base::FileLock::Acquire(owner, kOwnerTimeout));
  const std::string earlier = base::ReadFile(owner).value_or("");
  const std::vector<fs::path> left = LeftIn(folder_);
  unsent_ = rest_unsent_ = !left.empty();
  url_ = url;
  remote_ = std::make_unique<checkpoint::RemoteStore>(storage_, url);
  const bool is_own = !environment_.job_id.empty() && earlier == environment_.job_id;
  if (!left.empty() && !is_own) {
    // If the storage is empty, the leftovers of another job are obsolete.
    MUSTER_ASSIGN_OR_RETURN(const std::vector<int64_t> steps, remote_->Steps());
    std::error_code error;
    for (const fs::path& path : left) {
      if (steps.empty()) fs::remove_all(path, error);
    }
  }
  lock_->Describe(environment_.job_id);
  return absl::OkStatus();
}

absl::Status ModelDir::ClaimForTraining() {
  if (is_remote() || folder_.empty()) return absl::OkStatus();
  const std::string& id = environment_.job_id;
  MUSTER_ASSIGN_OR_RETURN(
      lock_,
      checkpoint::ClaimForTraining(
          folder_, absl::StrCat(id.empty() ? "" : absl::StrCat("job ", id, ", "), ThisProcess())));
  return absl::OkStatus();
}

absl::Status ModelDir::FetchNewest(const std::vector<int64_t>& steps) {
  // A checkpoint that is damaged in the storage is skipped, as one on disk is; any other failure is
  // returned, since an older checkpoint would lose work that exists.
  for (auto newest = steps.rbegin(); newest != steps.rend(); ++newest) {
    const absl::Status status = remote_->Fetch(*newest, folder_);
    if (!absl::IsDataLoss(status)) return status;
    if (skipped_.insert(*newest).second) {
      log_(absl::StrCat("skipped a checkpoint: ", status.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status ModelDir::KeepUnsent(const std::vector<int64_t>& steps) {
  for (const checkpoint::Entry& entry : checkpoint::List(folder_)) {
    std::error_code error;
    if (!entry.status.ok()) {
      fs::remove_all(entry.folder, error);
    } else if (steps.empty() || entry.step > steps.back()) {
      log_(absl::StrCat("sending step ", entry.step, ", which an earlier run could not send"));
      MUSTER_RETURN_IF_ERROR(remote_->Send(entry.folder));
    }
  }
  return absl::OkStatus();
}

absl::Status ModelDir::Fetch(std::optional<int64_t> step) {
  if (!is_remote()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(std::vector<int64_t> steps, remote_->Steps());
  if (unsent_ || !step.has_value()) MUSTER_RETURN_IF_ERROR(KeepUnsent(steps));
  // The checkpoint of `step` may be one that was sent just now.
  if (unsent_.exchange(false) && step.has_value()) {
    MUSTER_ASSIGN_OR_RETURN(steps, remote_->Steps());
  }
  MUSTER_RETURN_IF_ERROR(FetchFile(BestFile()));
  if (!step.has_value()) return FetchNewest(steps);
  if (std::binary_search(steps.begin(), steps.end(), *step)) return remote_->Fetch(*step, folder_);
  return absl::NotFoundError(
      absl::StrCat(place_, ": has no checkpoint of step ", *step, "; ",
                   steps.empty() ? "it has none" : "available: ", absl::StrJoin(steps, ", ")));
}

absl::Status ModelDir::FetchWhich(const std::string& which) {
  if (!is_remote()) return absl::OkStatus();
  if (which == "best") MUSTER_RETURN_IF_ERROR(FetchFile(BestFile()));
  MUSTER_ASSIGN_OR_RETURN(const auto step, checkpoint::StepOf(folder_, which));
  return Fetch(step);
}

absl::Status ModelDir::Follow() {
  if (!is_remote()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const std::vector<int64_t> steps, remote_->Steps());
  for (const checkpoint::Entry& entry : checkpoint::List(folder_)) {
    std::error_code error;
    if (!std::binary_search(steps.begin(), steps.end(), entry.step)) {
      fs::remove_all(entry.folder, error);
    }
  }
  unsent_ = false;  // the remaining ones exist in the storage
  MUSTER_RETURN_IF_ERROR(FetchFile(BestFile()));
  return FetchNewest(steps);
}

void ModelDir::Forget(int64_t step) {
  if (!is_remote()) return;
  for (const checkpoint::Entry& entry : checkpoint::List(folder_)) {
    std::error_code error;
    if (entry.step < step) fs::remove_all(entry.folder, error);
  }
}

absl::Duration ModelDir::poll_interval() const {
  return is_remote() ? absl::Seconds(2) : absl::Milliseconds(200);
}

absl::Status ModelDir::FetchFile(const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(storage::FileSystem * there, storage_.For(url_));
  const auto text = ReadWhole(*there, url_.Child(name));
  if (absl::IsNotFound(text.status())) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(text.status());
  const std::string path = base::JoinPath(folder_, name);
  MUSTER_RETURN_IF_ERROR(base::MakeDirectories(base::FolderOf(path), 0755));
  absl::MutexLock lock(&mutex_);
  MUSTER_RETURN_IF_ERROR(base::ReplaceFile(path, *text, 0644));
  if (const auto stamp = StampOf(name)) sent_[name] = *stamp;
  return absl::OkStatus();
}

absl::Status ModelDir::ResumeFrom(int64_t step) {
  if (step == 0 && folder_.empty()) return absl::OkStatus();
  if (is_remote()) MUSTER_RETURN_IF_ERROR(FetchFile(kResumedFile));
  const std::string& job = environment_.job_id;
  const std::string mark = base::JoinPath(folder_, kResumedFile);
  if (!job.empty() && base::ReadFile(mark).value_or("") == job) return absl::OkStatus();
  if (step == 0) {
    MUSTER_RETURN_IF_ERROR(SetRunAside());
  } else {
    // Check that the checkpoint exists before moving anything.
    MUSTER_RETURN_IF_ERROR(Fetch(step));
    MUSTER_RETURN_IF_ERROR(checkpoint::Find(folder_, absl::StrCat(step)).status());
    MUSTER_RETURN_IF_ERROR(SetAside(step));
  }
  // The mark is written after the move: an attempt that is killed in between moves the rest. A
  // later attempt of the same job must not move the checkpoints that this one saves from here on.
  MUSTER_RETURN_IF_ERROR(base::WriteFileAtomically(mark, job, 0644));
  if (!is_remote()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(storage::FileSystem * there, storage_.For(url_));
  return WriteWhole(*there, url_.Child(kResumedFile), job);
}

absl::Status ModelDir::SetAside(int64_t after_step) {
  if (is_remote()) MUSTER_RETURN_IF_ERROR(remote_->SetAside(after_step));
  return checkpoint::SetAside(folder_, after_step);
}

absl::Status ModelDir::SetRunAside() {
  if (is_remote()) {
    // Complete the earlier run first: send its unsent files.
    MUSTER_ASSIGN_OR_RETURN(const std::vector<int64_t> steps, remote_->Steps());
    MUSTER_RETURN_IF_ERROR(KeepUnsent(steps));
    MUSTER_RETURN_IF_ERROR(SendRest());
    unsent_ = false;
  }
  MUSTER_ASSIGN_OR_RETURN(const std::string aside,
                          is_remote() ? remote_->SetRunAside() : checkpoint::SetRunAside(folder_));
  if (!aside.empty()) log_(absl::StrCat("starting fresh; moved the earlier run to ", aside));
  if (!is_remote()) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  sent_.clear();
  std::error_code error;
  for (const fs::path& path : LeftIn(folder_)) fs::remove_all(path, error);
  return absl::OkStatus();
}

absl::StatusOr<ModelDir::Last> ModelDir::Newest() {
  if (is_remote()) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<int64_t> steps, remote_->Steps());
    if (steps.empty()) return absl::NotFoundError(absl::StrCat(place_, ": has no checkpoints"));
    MUSTER_ASSIGN_OR_RETURN(const auto manifest, remote_->ReadManifest(steps.back()));
    MUSTER_ASSIGN_OR_RETURN(const auto state, remote_->ReadState(steps.back()));
    return Last{.step = manifest.step, .final = manifest.final, .state = state};
  }
  const auto entries = checkpoint::List(folder_);
  if (entries.empty()) return absl::NotFoundError(absl::StrCat(place_, ": has no checkpoints"));
  MUSTER_RETURN_IF_ERROR(entries.back().status);
  MUSTER_ASSIGN_OR_RETURN(const auto stored, checkpoint::Checkpoint::Open(entries.back().folder));
  return Last{.step = stored.step(), .final = stored.final(), .state = stored.state()};
}

absl::Status ModelDir::Publish(const std::string& checkpoint, int keep) {
  absl::Status retained;
  if (is_remote()) {
    unsent_ = true;
    MUSTER_RETURN_IF_ERROR(remote_->Send(checkpoint));
    unsent_ = false;
    if (const absl::Status sent = SendRest(); !sent.ok()) {
      log_(absl::StrCat("summaries could not be sent: ", sent.message()));
    }
    retained = remote_->Retain(keep);
    // The newest stays on this machine for the chief's evaluation.
    checkpoint::Retain(folder_, 1, {}).IgnoreError();
  } else {
    std::set<int64_t> always;
    if (const auto best = checkpoint::ReadBest(folder_); best.ok()) always.insert(best->step);
    retained = checkpoint::Retain(folder_, keep, always);
  }
  if (!retained.ok()) {
    log_(absl::StrCat("old checkpoints could not be removed: ", retained.message()));
  }
  return absl::OkStatus();
}

std::optional<std::pair<int64_t, int64_t>> ModelDir::StampOf(const std::string& name) const {
  struct stat info {};
  if (::stat(base::JoinPath(folder_, name).c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return std::nullopt;
  }
  return std::pair(static_cast<int64_t>(info.st_size),
                   absl::ToUnixNanos(absl::TimeFromTimespec(info.st_mtim)));
}

absl::Status ModelDir::SendRest() {
  if (!is_remote()) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  std::vector<storage::CopyPair> pairs;
  std::map<std::string, std::pair<int64_t, int64_t>> stamps;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder_, error)) {
    const std::string name = fs::relative(entry.path(), folder_, error).string();
    const auto stamp = StampOf(name);
    if (!stamp || !IsRest(name)) continue;
    if (const auto sent = sent_.find(name); sent != sent_.end() && sent->second == *stamp) continue;
    // Taken before the copy: a file that grows meanwhile has another stamp and is sent again.
    stamps[name] = *stamp;
    pairs.push_back({{.url = storage::LocalUrl(entry.path().string()), .bytes = stamp->first},
                     url_.Child(name)});
  }
  rest_unsent_ = true;
  const storage::CopyResult result = storage::CopyAll(storage_, pairs, {});
  for (const absl::Status& failure : result.failures) {
    if (!absl::IsNotFound(failure)) return failure;  // a file removed meanwhile is no failure
  }
  rest_unsent_ = false;
  for (auto& [name, stamp] : stamps) sent_[name] = stamp;
  return absl::OkStatus();
}

}  // namespace muster::train
