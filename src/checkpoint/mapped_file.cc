#include "checkpoint/mapped_file.h"

#include <filesystem>

#include "base/status_macros.h"
#include "checkpoint/disk.h"

namespace muster::checkpoint {

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  const std::filesystem::path parts(path);
  MUSTER_ASSIGN_OR_RETURN(const OpenedFile file,
                          OpenRegular(parts.parent_path().string(), parts.filename().string()));
  auto mapping = base::Mapping::Of(file.fd.get(), file.bytes);
  if (!mapping.ok()) return base::Annotate(mapping.status(), path);
  return MappedFile(*std::move(mapping));
}

}  // namespace muster::checkpoint
