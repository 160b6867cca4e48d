// A file that is written once, sequentially, and hashed while it is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/bytes/digest.h"
#include "base/files/unique_fd.h"

namespace muster::checkpoint {

// Buffers small pieces; hashes and writes large ones block by block, while a block is in the CPU
// cache. Returns ResourceExhausted if the disk is full. Not thread-safe.
class HashedFile {
 public:
  // REQUIRES: the file does not exist.
  static absl::StatusOr<HashedFile> Create(const std::string& folder, const std::string& name);

  absl::Status Append(absl::Span<const std::byte> bytes);
  // Writes buffered bytes and computes the hash. No Append() may follow.
  absl::Status Finish();
  // Flushes the file to the disk (fsync).
  absl::Status Sync();

  const std::string& name() const { return name_; }
  int64_t bytes() const { return bytes_; }
  // REQUIRES: Finish() succeeded.
  const std::string& sha256() const { return digest_; }

 private:
  HashedFile(base::UniqueFd fd, std::string path, std::string name)
      : fd_(std::move(fd)), path_(std::move(path)), name_(std::move(name)) {}
  absl::Status Put(absl::Span<const std::byte> block);

  base::UniqueFd fd_;
  std::string path_;
  std::string name_;
  base::Sha256 hash_;
  std::string digest_;
  std::vector<std::byte> buffer_;
  int64_t bytes_ = 0;
};

}  // namespace muster::checkpoint
