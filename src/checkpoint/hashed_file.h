// A file that is written once, from front to back, and hashed on the way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/digest.h"
#include "base/unique_fd.h"

namespace muster::checkpoint {

// Small pieces are gathered; large ones are hashed and written block by block, while a block is in
// the processor's cache. A full disk is ResourceExhausted. Not thread-safe.
class HashedFile {
 public:
  // The file must not exist.
  static absl::StatusOr<HashedFile> Create(const std::string& folder, const std::string& name);

  absl::Status Append(absl::Span<const std::byte> bytes);
  // Writes what was gathered. Nothing may be appended afterwards.
  absl::Status Finish();
  // Waits for the disk.
  absl::Status Sync();

  const std::string& name() const { return name_; }
  int64_t bytes() const { return bytes_; }
  const std::string& sha256() const { return digest_; }  // once finished

 private:
  HashedFile(UniqueFd fd, std::string path, std::string name)
      : fd_(std::move(fd)), path_(std::move(path)), name_(std::move(name)) {}
  absl::Status Put(absl::Span<const std::byte> block);

  UniqueFd fd_;
  std::string path_;
  std::string name_;
  Sha256 hash_;
  std::string digest_;
  std::vector<std::byte> gathered_;
  int64_t bytes_ = 0;
};

}  // namespace muster::checkpoint
