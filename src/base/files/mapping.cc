#include "base/files/mapping.h"

#include <sys/mman.h>

#include <cerrno>

namespace muster::base {

absl::StatusOr<Mapping> Mapping::Of(int fd, int64_t size) {
  if (size == 0) return Mapping();  // mmap() rejects a length of 0
  void* start = ::mmap(nullptr, static_cast<size_t>(size), PROT_READ, MAP_PRIVATE, fd, 0);
  if (start == MAP_FAILED) return absl::ErrnoToStatus(errno, "mmap");
  return Mapping({static_cast<const char*>(start), static_cast<size_t>(size)});
}

Mapping::~Mapping() {
  if (!bytes_.empty()) ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

}  // namespace muster::base
