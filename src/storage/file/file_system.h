// Files of this machine: plain paths.
#pragma once

#include <memory>
#include <vector>

#include "storage/file_system.h"

namespace muster::storage {

// A file being written has a name of its own beside the one it will get (TemporaryName()), which
// List() leaves out; a killed process leaves it behind. Folders are made as they are needed. Links
// are followed; what is neither a file nor a folder is not seen.
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
