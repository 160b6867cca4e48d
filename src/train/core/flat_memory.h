// A large block of zeroed memory for parameters: page-aligned, in huge pages where the system has
// them, returned to the system when freed.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>

namespace muster::train {

class FlatMemory {
 public:
  FlatMemory() = default;
  // Throws std::bad_alloc if the mapping fails.
  explicit FlatMemory(size_t bytes) : bytes_(bytes) {
    if (bytes_ == 0) return;
    data_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED) throw std::bad_alloc();
    ::madvise(data_, bytes_, MADV_HUGEPAGE);
  }
  ~FlatMemory() {
    if (data_ != nullptr) ::munmap(data_, bytes_);
  }
  FlatMemory(FlatMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  FlatMemory& operator=(FlatMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  // Faults in the pages of [offset, offset + size) now instead of on first access. Keeps their
  // content. Best effort: kernels before 5.14 do not implement MADV_POPULATE_WRITE.
  void Populate(size_t offset, size_t size) const {
    ::madvise(bytes() + offset, std::min(size, bytes_ - offset), MADV_POPULATE_WRITE);
  }

  std::byte* bytes() const { return static_cast<std::byte*>(data_); }
  float* floats() const { return static_cast<float*>(data_); }
  size_t size() const { return bytes_; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace muster::train
