#include "checkpoint/hashed_file.h"

#include <fcntl.h>

#include <cerrno>

#include "base/files/files.h"
#include "base/status_macros.h"
#include "checkpoint/disk.h"

namespace muster::checkpoint {
namespace {

// Large enough to amortize a system call, small enough to fit into the CPU cache.
constexpr size_t kBlock = 512 << 10;

}  // namespace

absl::StatusOr<HashedFile> HashedFile::Create(const std::string& folder, const std::string& name) {
  const std::string path = base::JoinPath(folder, name);
  base::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd.valid()) return base::DiskError(errno, path);
  return HashedFile(std::move(fd), path, name);
}

absl::Status HashedFile::Put(absl::Span<const std::byte> block) {
  hash_.Update(block);
  return WriteFully(fd_.get(), block, path_);
}

absl::Status HashedFile::Append(absl::Span<const std::byte> bytes) {
  bytes_ += static_cast<int64_t>(bytes.size());
  while (!bytes.empty()) {
    if (buffer_.empty() && bytes.size() >= kBlock) {
      MUSTER_RETURN_IF_ERROR(Put(bytes.first(kBlock)));
      bytes.remove_prefix(kBlock);
      continue;
    }
    const auto piece = bytes.first(std::min(bytes.size(), kBlock - buffer_.size()));
    buffer_.insert(buffer_.end(), piece.begin(), piece.end());
    bytes.remove_prefix(piece.size());
    if (buffer_.size() < kBlock) continue;
    MUSTER_RETURN_IF_ERROR(Put(buffer_));
    buffer_.clear();
  }
  return absl::OkStatus();
}

absl::Status HashedFile::Finish() {
  MUSTER_RETURN_IF_ERROR(Put(buffer_));
  buffer_ = {};
  digest_ = hash_.Finish();
  return absl::OkStatus();
}

absl::Status HashedFile::Sync() {
  if (::fsync(fd_.get()) != 0) return base::DiskError(errno, path_);
  return absl::OkStatus();
}

}  // namespace muster::checkpoint
