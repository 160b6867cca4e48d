// A read-only memory mapping of a file.
#pragma once

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::base {

// bytes() keeps its address when the Mapping is moved. Truncating the file while it is mapped makes
// reads fail with SIGBUS; unlinking it is harmless.
class Mapping {
 public:
  // Maps the first `size` bytes of an open file. `fd` may be closed afterwards.
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

}  // namespace muster::base
