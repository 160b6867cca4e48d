// The local file system: plain paths.
#pragma once

#include <memory>
#include <vector>

#include "storage/file_system.h"

namespace muster::storage {

// Writes to a TemporaryName() in the target's folder, which List() leaves out; a killed process
// leaves that file behind. Creates folders as needed. Follows links. Ignores everything that is
// neither a file nor a folder.
class LocalFileSystem final : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<Reader>> OpenForReading(const Url& url) override;
  absl::StatusOr<std::unique_ptr<Writer>> OpenForWriting(const Url& url,
                                                         IfExists if_exists) override;
  absl::StatusOr<FileInfo> Stat(const Url& url) override;
  absl::StatusOr<std::vector<FileInfo>> List(const Url& prefix, Depth depth) override;
  absl::Status Delete(const Url& url) override;
  absl::Status Rename(const Url& from, const Url& to) override;
};

}  // namespace muster::storage
