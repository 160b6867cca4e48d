// A large block of zeroed memory for parameters: page-aligned, in huge pages where the system has
// them, returned to it at once.
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
  // Throws std::bad_alloc when there is no room, as every container does.
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

  // Makes the system give the memory of a part now, not when it is first touched. Its content
  // stays.
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
