// Object storages rename nothing and lock nothing, so the manifest alone marks a checkpoint as
// complete. Every operation on checkpoints/ keeps one invariant: while a manifest exists, all files
// that it lists exist.
//
//    Send     delete an old manifest, copy the files, write the manifest
//    Remove   delete the manifest, then the files
//    Move     copy everything to superseded-N, in any order; Remove the original
//
// A reader that has read a manifest just before its removal gets NotFound or a wrong checksum for a
// file, which Fetch() returns as DataLoss.
#include "checkpoint/remote.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "checkpoint/disk.h"
#include "checkpoint/format.h"
#include "checkpoint/retention.h"
#include "checkpoint/verify.h"
#include "storage/copy.h"

namespace muster::checkpoint {
namespace {

using storage::CopyFiles;
using storage::CopyPair;
using storage::Depth;
using storage::FileInfo;
using storage::FileSystem;
using storage::LocalUrl;
using storage::Url;

// Returns all files below a folder, the manifest last.
absl::StatusOr<std::vector<FileInfo>> FilesOf(FileSystem& files, const Url& folder) {
  MUSTER_ASSIGN_OR_RETURN(auto found, files.List(folder.AsFolder(), Depth::kAll));
  std::stable_partition(found.begin(), found.end(),
                        [](const FileInfo& info) { return info.url.Basename() != kManifestFile; });
  return found;
}

}  // namespace

RemoteStore::RemoteStore(storage::Storage& storage, Url model_dir)
    : storage_(storage), model_dir_(std::move(model_dir)) {}

Url RemoteStore::FolderOf(int64_t step) const {
  return model_dir_.Child(kFolder).Child(StepFolder(step));
}

absl::StatusOr<RemoteStore::Found> RemoteStore::Scan() {
  MUSTER_ASSIGN_OR_RETURN(FileSystem * there, files());
  const Url folder = model_dir_.Child(kFolder).AsFolder();
  MUSTER_ASSIGN_OR_RETURN(const auto files, there->List(folder, Depth::kAll));
  std::set<int64_t> complete, all;
  for (const FileInfo& info : files) {
    const absl::string_view name = absl::StripPrefix(info.url.name, folder.name);
    const size_t slash = name.find('/');
    if (slash == absl::string_view::npos) continue;
    const auto step = ParseStepFolder(name.substr(0, slash));
    if (!step.has_value()) continue;
    all.insert(*step);
    if (name.substr(slash + 1) == kManifestFile) complete.insert(*step);
  }
  Found found{.complete = {complete.begin(), complete.end()}};
  std::set_difference(all.begin(), all.end(), complete.begin(), complete.end(),
                      std::back_inserter(found.partial));
  return found;
}

absl::StatusOr<std::vector<int64_t>> RemoteStore::Steps() {
  MUSTER_ASSIGN_OR_RETURN(Found found, Scan());
  return std::move(found.complete);
}

absl::StatusOr<std::vector<Entry>> RemoteStore::List() {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<int64_t> steps, Steps());
  std::vector<Entry> entries;
  for (const int64_t step : steps) {
    Entry entry{.step = step, .folder = FolderOf(step).ToString(), .written = absl::InfinitePast()};
    const auto manifest = ReadManifest(step);
    if (absl::IsNotFound(manifest.status())) continue;  // deleted since Steps()
    entry.status = manifest.status();
    if (manifest.ok()) entry.Fill(*manifest);
    entries.push_back(std::move(entry));
  }
  return entries;
}

absl::StatusOr<std::string> RemoteStore::ReadText(const Url& url) {
  MUSTER_ASSIGN_OR_RETURN(FileSystem * there, files());
  return ReadWhole(*there, url, kMaxJsonBytes);
}

absl::StatusOr<Manifest> RemoteStore::ReadManifest(int64_t step) {
  const Url url = FolderOf(step).Child(kManifestFile);
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadText(url));
  auto manifest = ParseManifest(text);
  if (!manifest.ok()) return base::Annotate(manifest.status(), url.ToString());
  return manifest;
}

absl::StatusOr<nlohmann::json> RemoteStore::ReadObject(const Url& url) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadText(url));
  auto object = ParseJsonObject(text);
  if (!object.ok()) return base::Annotate(object.status(), url.ToString());
  return object;
}

absl::StatusOr<nlohmann::json> RemoteStore::ReadState(int64_t step) {
  return ReadObject(FolderOf(step).Child(kStateFile));
}

absl::Status RemoteStore::Fetch(int64_t step, const std::string& model_dir) {
  MUSTER_ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(step));
  const std::string folder = CheckpointPath(model_dir, step);
  const auto here = checkpoint::ReadManifest(folder);
  if (here.ok() && ToJson(*here) == ToJson(manifest)) return CheckSizes(folder, manifest);
  const std::string partial = absl::StrCat(folder, kPartialSuffix);
  // A folder of this step with another manifest is that of an earlier run, or its download was
  // interrupted. Only one process uses the local model dir; see ModelDir.
  for (const std::string& old : {folder, partial}) {
    if (Exists(old)) MUSTER_RETURN_IF_ERROR(RemoveFolder(old));
  }
  MUSTER_RETURN_IF_ERROR(base::MakeDirectories(partial, 0755));
  std::vector<CopyPair> pairs;
  for (const ManifestFile& file : manifest.files) {
    if (!IsPlainFileName(file.name)) {
      return absl::DataLossError(absl::StrCat(FolderOf(step).ToString(), ": its manifest names '",
                                              file.name, "', which is not a plain file name"));
    }
    pairs.push_back({{.url = FolderOf(step).Child(file.name), .bytes = file.bytes},
                     LocalUrl(base::JoinPath(partial, file.name))});
  }
  const absl::Status copied = CopyFiles(storage_, pairs);
  // A file that the manifest lists but that does not exist is damage, not absence.
  if (absl::IsNotFound(copied)) return absl::DataLossError(copied.message());
  MUSTER_RETURN_IF_ERROR(copied);
  const auto damaged = VerifyFiles(partial, manifest, [](int64_t) {});
  if (!damaged.empty()) {  // name the remote file, not its temporary copy
    return absl::Status(
        damaged.front().code(),
        absl::StrReplaceAll(damaged.front().message(), {{partial, FolderOf(step).ToString()}}));
  }
  MUSTER_RETURN_IF_ERROR(
      base::ReplaceFile(base::JoinPath(partial, kManifestFile), ToJson(manifest)));
  return Rename(partial, folder);
}

absl::Status RemoteStore::Send(const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(const Manifest manifest, checkpoint::ReadManifest(folder));
  MUSTER_ASSIGN_OR_RETURN(FileSystem * there, files());
  const Url to = FolderOf(manifest.step);
  const auto sent = ReadManifest(manifest.step);
  if (sent.ok() && ToJson(*sent) == ToJson(manifest)) return absl::OkStatus();
  // Without its manifest, an older checkpoint of the same step is partial while it is overwritten.
  MUSTER_RETURN_IF_ERROR(there->Delete(to.Child(kManifestFile)));
  std::vector<CopyPair> pairs;
  for (const ManifestFile& file : manifest.files) {
    pairs.push_back({{.url = LocalUrl(base::JoinPath(folder, file.name)), .bytes = file.bytes},
                     to.Child(file.name)});
  }
  MUSTER_RETURN_IF_ERROR(CopyFiles(storage_, pairs));
  return WriteWhole(*there, to.Child(kManifestFile), ToJson(manifest));
}

absl::Status RemoteStore::Remove(int64_t step) {
  MUSTER_ASSIGN_OR_RETURN(FileSystem * there, files());
  MUSTER_ASSIGN_OR_RETURN(const auto found, FilesOf(*there, FolderOf(step)));
  // In reverse, so that the manifest goes first.
  for (auto info = found.rbegin(); info != found.rend(); ++info) {
    MUSTER_RETURN_IF_ERROR(there->Delete(info->url));
  }
  // HDFS keeps empty folders; a folder that is not empty has files of others.
  const absl::Status removed = there->Delete(FolderOf(step).AsFolder());
  return absl::IsFailedPrecondition(removed) ? absl::OkStatus() : removed;
}

Url RemoteStore::BestUrl() const { return model_dir_.Child(kFolder).Child(kBestFile); }

absl::StatusOr<Best> RemoteStore::ReadBest() {
  MUSTER_ASSIGN_OR_RETURN(const nlohmann::json record, ReadObject(BestUrl()));
  auto best = BestOf(record);
  if (!best.ok()) return base::Annotate(best.status(), BestUrl().ToString());
  return best;
}

absl::Status RemoteStore::Retain(int keep) {
  MUSTER_RETURN_IF_ERROR(CheckKeep(keep));
  MUSTER_ASSIGN_OR_RETURN(const Found found, Scan());
  const std::vector<int64_t>& steps = found.complete;
  // One job writes, in the order of steps: a partial checkpoint before the newest complete one no
  // longer has a writer.
  for (const int64_t step : found.partial) {
    if (!steps.empty() && step < steps.back()) MUSTER_RETURN_IF_ERROR(Remove(step));
  }
  const auto best = ReadBest();
  if (!best.ok() && !absl::IsNotFound(best.status()) && !absl::IsDataLoss(best.status())) {
    return best.status();
  }
  std::set<int64_t> always;
  if (best.ok()) always.insert(best->step);
  for (const int64_t step :
       StepsToDelete({steps.begin(), steps.end()}, /*damaged=*/{}, keep, always)) {
    MUSTER_RETURN_IF_ERROR(Remove(step));
  }
  return absl::OkStatus();
}

// Object storages cannot rename folders, so this copies all files and then deletes the originals.
absl::Status RemoteStore::Move(int64_t step, const Url& to) {
  MUSTER_ASSIGN_OR_RETURN(FileSystem * there, files());
  MUSTER_ASSIGN_OR_RETURN(const auto found, FilesOf(*there, FolderOf(step)));
  std::vector<CopyPair> pairs;
  pairs.reserve(found.size());
  for (const FileInfo& info : found) pairs.push_back({info, to.Child(info.url.Basename())});
  MUSTER_RETURN_IF_ERROR(CopyFiles(storage_, pairs));
  return Remove(step);
}

absl::StatusOr<Url> RemoteStore::UnusedSupersededFolder() {
  MUSTER_ASSIGN_OR_RETURN(FileSystem * there, files());
  for (int n = 1;; ++n) {
    Url aside = model_dir_.Child(absl::StrCat(kSupersededPrefix, n));
    MUSTER_ASSIGN_OR_RETURN(const auto taken, there->List(aside.AsFolder(), Depth::kHere));
    if (taken.empty()) return aside;
  }
}

absl::StatusOr<std::string> RemoteStore::MoveAside(int64_t after_step,
                                                   const std::vector<FileInfo>& others) {
  MUSTER_ASSIGN_OR_RETURN(FileSystem * there, files());
  MUSTER_ASSIGN_OR_RETURN(std::vector<int64_t> steps, Steps());
  steps.erase(steps.begin(), std::upper_bound(steps.begin(), steps.end(), after_step));
  const auto best = ReadBest();
  if (!best.ok() && !absl::IsNotFound(best.status()) && !absl::IsDataLoss(best.status())) {
    return best.status();
  }
  const bool best_goes = best.ok() && best->step > after_step;
  if (steps.empty() && !best_goes && others.empty()) return "";
  MUSTER_ASSIGN_OR_RETURN(const Url aside, UnusedSupersededFolder());
  if (best_goes) {
    MUSTER_ASSIGN_OR_RETURN(const FileInfo record, there->Stat(BestUrl()));
    MUSTER_RETURN_IF_ERROR(CopyFiles(storage_, {{record, aside.Child(kBestFile)}}));
    MUSTER_RETURN_IF_ERROR(there->Delete(BestUrl()));
  }
  // Newest first: an interruption at any point leaves the run consistent, only shorter.
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    MUSTER_RETURN_IF_ERROR(Move(*step, aside.Child(StepFolder(*step))));
  }
  std::vector<CopyPair> pairs;
  for (const FileInfo& info : others) {
    const absl::string_view name = absl::StripPrefix(info.url.name, model_dir_.AsFolder().name);
    pairs.push_back({info, aside.Child(std::string(name))});
  }
  MUSTER_RETURN_IF_ERROR(CopyFiles(storage_, pairs));
  for (const FileInfo& info : others) MUSTER_RETURN_IF_ERROR(there->Delete(info.url));
  return aside.ToString();
}

absl::Status RemoteStore::SetAside(int64_t after_step) {
  return MoveAside(after_step, {}).status();
}

absl::StatusOr<std::string> RemoteStore::SetRunAside() {
  MUSTER_ASSIGN_OR_RETURN(FileSystem * there, files());
  const Url folder = model_dir_.AsFolder();
  MUSTER_ASSIGN_OR_RETURN(auto found, there->List(folder, Depth::kAll));
  std::erase_if(found, [&](const FileInfo& info) {
    const absl::string_view name = absl::StripPrefix(info.url.name, folder.name);
    return !IsRunOutput(name.substr(0, name.find('/')));
  });
  return MoveAside(/*after_step=*/-1, found);
}

}  // namespace muster::checkpoint
