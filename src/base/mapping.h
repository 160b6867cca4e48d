// A file's bytes in memory without being read beforehand.
#pragma once

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// Read only. Its place in memory stays the same when it is moved. Whoever shortens the file while
// it is mapped ends the process that reads it (SIGBUS); removing it does no harm.
class Mapping {
 public:
  // The first `size` bytes of an open file, which may be closed afterwards.
  static absl::StatusOr<Mapping> Of(int fd, int64_t size);

  Mapping() = default;
  Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping();

  absl::string_view bytes() const { return bytes_; }

 private:
  explicit Mapping(absl::string_view bytes) : bytes_(bytes) {}
  absl::string_view bytes_;
};

}  // namespace muster
