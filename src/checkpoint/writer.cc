// One checkpoint, and where it is if the process dies:
//
//    Claim ──> step-N.partial, writer.lock held ──Append──> … ──Complete──> with its manifest
//                                                                              │
//              step-N <──────────────────one rename────────────────────────Publish
//
// Before the rename the folder is partial, and the kernel releases its lock: the next writer of the
// step, or Retain(), removes it. After the rename the checkpoint is complete and on the disk.
#include "checkpoint/writer.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "checkpoint/disk.h"
#include "checkpoint/format.h"
#include "checkpoint/manifest.h"
#include "checkpoint/safetensors.h"

namespace muster::checkpoint {
namespace {

// Returns the map from weights to files that Hugging Face's tools expect.
absl::StatusOr<std::string> IndexText(const std::vector<Shard>& shards) {
  int64_t total = 0;
  nlohmann::ordered_json map = nlohmann::ordered_json::object();
  for (const Shard& shard : shards) {
    total += shard.bytes;
    for (const base::TensorSpec& spec : shard.specs) map.push_back({spec.name, shard.file});
  }
  const nlohmann::ordered_json index = {{"metadata", {{"total_size", total}}}, {"weight_map", map}};
  return index.dump(2) + "\n";
}

absl::StatusOr<std::string> StateText(const nlohmann::json& state) {
  if (!state.is_object()) return absl::InvalidArgumentError("the state must be a JSON object");
  std::string text;
  try {
    text = state.dump(2) + "\n";
  } catch (const nlohmann::json::exception&) {
    return absl::InvalidArgumentError("the state contains text that is not valid UTF-8");
  }
  // Apply the reader's limits: a state that cannot be read back must not be written.
  if (static_cast<int64_t>(text.size()) > kMaxJsonBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the state has ", text.size(), " bytes; at most ", kMaxJsonBytes, " can be stored"));
  }
  const auto again = ParseJsonObject(text);
  if (!again.ok())
    return absl::InvalidArgumentError(absl::StrCat("the state ", again.status().message()));
  return text;
}

// Moves `complete` to `target`; the former target is then at `complete`, for removal.
absl::Status Exchange(const std::string& complete, const std::string& target) {
  if (::renameat2(AT_FDCWD, complete.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) {
    return absl::OkStatus();
  }
  if (errno != EINVAL && errno != ENOSYS) return base::DiskError(errno, target);
  // This file system cannot exchange names, so the step has no checkpoint between two renames. If
  // the process dies there, Retain() puts the old one back.
  const std::string aside = absl::StrCat(target, kReplacedSuffix);
  MUSTER_RETURN_IF_ERROR(Rename(target, aside));
  if (const absl::Status status = Rename(complete, target); !status.ok()) {
    Rename(aside, target).IgnoreError();
    return status;
  }
  return Rename(aside, complete);
}

}  // namespace

Writer::Writer(const std::string& model_dir, const WriteOptions& options)
    : options_(options),
      store_(base::JoinPath(model_dir, kFolder)),
      folder_(base::JoinPath(store_, StepFolder(options.step))),
      partial_(absl::StrCat(folder_, kPartialSuffix)) {}

absl::StatusOr<std::unique_ptr<Writer>> Writer::Begin(const std::string& model_dir,
                                                      const WriteOptions& options,
                                                      const std::vector<base::TensorSpec>& weights,
                                                      const std::vector<base::TensorSpec>& slots) {
  if (options.step < 0) return absl::InvalidArgumentError("the step must be 0 or more");
  std::unique_ptr<Writer> writer(new Writer(model_dir, options));
  MUSTER_RETURN_IF_ERROR(writer->Plan(weights, slots));
  MUSTER_RETURN_IF_ERROR(writer->Claim());
  if (const auto status = writer->CreateFiles(); !status.ok()) return writer->Fail(status);
  return writer;
}

absl::Status Writer::Plan(const std::vector<base::TensorSpec>& weights,
                          const std::vector<base::TensorSpec>& slots) {
  int first = 0;
  for (const auto& [kind, specs, shards] : {std::tuple(kModelKind, &weights, &weight_shards_),
                                            std::tuple(kOptimizerKind, &slots, &slot_shards_)}) {
    MUSTER_RETURN_IF_ERROR(WriteHeader(*specs, {}).status());  // names are unique over all files
    MUSTER_ASSIGN_OR_RETURN(ShardPlan plan, PlanShards(kind, *specs, options_.max_file_bytes));
    for (size_t i = 0; i < specs->size(); ++i) {
      expected_.push_back({.bytes = (*specs)[i].bytes(), .file = first + plan.shard_of[i]});
    }
    *shards = std::move(plan.shards);
    first += static_cast<int>(shards->size());
  }
  return absl::OkStatus();
}

// Creates and locks the partial folder. Removes that of a writer that died.
// Lock order: kStoreLock, then kWriterLock.
absl::Status Writer::Claim() {
  MUSTER_RETURN_IF_ERROR(base::MakeDirectories(store_, 0755));
  MUSTER_ASSIGN_OR_RETURN(
      const base::FileLock store,
      base::FileLock::Acquire(base::JoinPath(store_, kStoreLock), kStoreLockTimeout));
  const std::string lock = base::JoinPath(partial_, kWriterLock);
  if (Exists(partial_)) {
    if (Exists(lock)) {
      MUSTER_ASSIGN_OR_RETURN(const auto dead, base::FileLock::Try(lock));
      if (!dead.has_value()) {
        return absl::FailedPreconditionError(
            absl::StrCat(folder_,
                         ": another process is writing this step's checkpoint; only one "
                         "task of a job may save"));
      }
    }
    MUSTER_RETURN_IF_ERROR(RemoveFolder(partial_));
  }
  if (::mkdir(partial_.c_str(), 0755) != 0) return base::DiskError(errno, partial_);
  auto owner = base::FileLock::Acquire(lock, kStoreLockTimeout);
  if (!owner.ok()) {
    RemoveFolder(partial_).IgnoreError();
    return owner.status();
  }
  owner_ = std::make_unique<base::FileLock>(*std::move(owner));
  return absl::OkStatus();
}

absl::Status Writer::CreateFiles() {
  for (const auto* shards : {&weight_shards_, &slot_shards_}) {
    for (const Shard& shard : *shards) {
      MUSTER_ASSIGN_OR_RETURN(const std::string header, WriteHeader(shard.specs, TorchMetadata()));
      MUSTER_ASSIGN_OR_RETURN(HashedFile file, HashedFile::Create(partial_, shard.file));
      MUSTER_RETURN_IF_ERROR(file.Append(AsBytes(header)));
      files_.push_back(std::move(file));
    }
  }
  return absl::OkStatus();
}

Writer::~Writer() {
  if (!committed_) Fail(absl::CancelledError("the checkpoint was abandoned")).IgnoreError();
}

// Frees the disk space immediately rather than in the destructor.
absl::Status Writer::Fail(absl::Status status) {
  if (!failure_.ok()) return failure_;
  failure_ = std::move(status);
  files_.clear();
  if (owner_ != nullptr) RemoveFolder(partial_).IgnoreError();
  owner_.reset();
  return failure_;
}

absl::Status Writer::Append(absl::Span<const std::byte> bytes) {
  if (!failure_.ok()) return failure_;
  if (committed_) return absl::FailedPreconditionError("the checkpoint is complete");
  const absl::Status status = Write(bytes);
  return status.ok() ? status : Fail(status);
}

absl::Status Writer::Write(absl::Span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (next_ == expected_.size()) {
      return absl::InvalidArgumentError("more bytes than the tensors have");
    }
    const Expected& tensor = expected_[next_];
    const auto piece =
        bytes.first(std::min(bytes.size(), static_cast<size_t>(tensor.bytes - received_)));
    MUSTER_RETURN_IF_ERROR(files_[tensor.file].Append(piece));
    bytes.remove_prefix(piece.size());
    received_ += static_cast<int64_t>(piece.size());
    if (received_ == tensor.bytes) {
      ++next_;
      received_ = 0;
    }
  }
  return absl::OkStatus();
}

absl::Status Writer::Commit(const nlohmann::json& state) {
  if (!failure_.ok()) return failure_;
  if (committed_) return absl::FailedPreconditionError("the checkpoint is complete");
  absl::Status status = Complete(state);
  if (status.ok()) status = Publish();
  return status.ok() ? status : Fail(status);
}

// Finishes all files and writes the manifest, last. Only the folder's name then marks it partial.
absl::Status Writer::Complete(const nlohmann::json& state) {
  while (next_ < expected_.size() && expected_[next_].bytes == 0) ++next_;
  if (next_ < expected_.size()) {
    return absl::FailedPreconditionError(absl::StrCat("bytes are missing: ", next_, " of ",
                                                      expected_.size(), " tensors have arrived"));
  }
  MUSTER_ASSIGN_OR_RETURN(const std::string index, IndexText(weight_shards_));
  MUSTER_ASSIGN_OR_RETURN(const std::string state_text, StateText(state));
  MUSTER_RETURN_IF_ERROR(WriteSmallFile(kIndexFile, index));
  MUSTER_RETURN_IF_ERROR(WriteSmallFile(kStateFile, state_text));
  Manifest manifest{.step = options_.step,
                    .model_name = options_.model_name,
                    .written = absl::Now(),
                    .final = options_.final};
  for (HashedFile& file : files_) {
    MUSTER_RETURN_IF_ERROR(file.Finish());
    manifest.files.push_back({.name = file.name(), .bytes = file.bytes(), .sha256 = file.sha256()});
  }
  // A manifest must not survive a power failure that its files do not survive: files and folder are
  // flushed before it is written, and it is flushed before the rename in Publish().
  for (HashedFile& file : files_) MUSTER_RETURN_IF_ERROR(file.Sync());
  MUSTER_RETURN_IF_ERROR(base::SyncFolder(partial_));
  const absl::Status written =
      base::WriteFileAtomically(base::JoinPath(partial_, kManifestFile), ToJson(manifest), 0644);
  if (absl::IsOutOfRange(written)) return absl::ResourceExhaustedError(written.message());
  return written;
}

absl::Status Writer::WriteSmallFile(const std::string& name, const std::string& text) {
  MUSTER_ASSIGN_OR_RETURN(HashedFile file, HashedFile::Create(partial_, name));
  MUSTER_RETURN_IF_ERROR(file.Append(AsBytes(text)));
  files_.push_back(std::move(file));
  return absl::OkStatus();
}

absl::Status Writer::Publish() {
  MUSTER_ASSIGN_OR_RETURN(
      const base::FileLock store,
      base::FileLock::Acquire(base::JoinPath(store_, kStoreLock), kStoreLockTimeout));
  // Safe only under the store lock: without writer.lock the folder looks abandoned.
  ::unlink(base::JoinPath(partial_, kWriterLock).c_str());
  const bool replaces = Exists(folder_);
  if (replaces) {
    MUSTER_RETURN_IF_ERROR(Exchange(partial_, folder_));
  } else {
    MUSTER_RETURN_IF_ERROR(Rename(partial_, folder_));
  }
  // From here on the checkpoint is visible, so a failure to flush the folder must not remove it.
  committed_ = true;
  files_.clear();
  owner_.reset();
  const absl::Status synced = base::SyncFolder(store_);
  if (replaces) RemoveFolder(partial_).IgnoreError();  // Retain() removes leftovers
  return synced;
}

}  // namespace muster::checkpoint
