// A file's bytes in memory without being read beforehand.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace muster::checkpoint {

// Read only. Its place in memory stays the same when it is moved. Whoever shortens the file while
// it is mapped ends the process that reads it (SIGBUS); removing it does no harm.
class MappedFile {
 public:
  // A regular file, not a link. DataLoss otherwise.
  static absl::StatusOr<MappedFile> Open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MappedFile();

  absl::Span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(absl::Span<const std::byte> bytes) : bytes_(bytes) {}
  absl::Span<const std::byte> bytes_;
};

}  // namespace muster::checkpoint
