#include "checkpoint/mapped_file.h"

#include <sys/mman.h>

#include <cerrno>
#include <filesystem>

#include "base/status_macros.h"
#include "checkpoint/disk.h"

namespace muster::checkpoint {

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  const std::filesystem::path parts(path);
  MUSTER_ASSIGN_OR_RETURN(const OpenedFile file,
                          OpenRegular(parts.parent_path().string(), parts.filename().string()));
  if (file.bytes == 0) return MappedFile({});  // an empty mapping is refused
  const auto size = static_cast<size_t>(file.bytes);
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd.get(), 0);
  if (start == MAP_FAILED) return absl::ErrnoToStatus(errno, path);
  return MappedFile(absl::MakeConstSpan(static_cast<const std::byte*>(start), size));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace muster::checkpoint
