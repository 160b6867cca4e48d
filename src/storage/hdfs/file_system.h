// Files of HDFS over WebHDFS: hdfs://host:port/path.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "storage/file_system.h"
#include "storage/hdfs/client.h"

namespace muster::storage {

// The port is that of the namenode's web server. What it hands out must not outlive it. A file
// being written has a name of its own beside the one it will get (TemporaryName()), which List()
// leaves out; a killed process leaves it behind. Folders stay when the last file in them is
// deleted.
class HdfsFileSystem final : public FileSystem {
 public:
  // With the settings that docs/storage.md tells of.
  static absl::StatusOr<std::unique_ptr<HdfsFileSystem>> FromVariables(const Variables& variables);
  explicit HdfsFileSystem(std::unique_ptr<HdfsClient> client) : client_(std::move(client)) {}

  absl::StatusOr<std::unique_ptr<Reader>> OpenForReading(const Url& url) override;
  absl::StatusOr<std::unique_ptr<Writer>> OpenForWriting(const Url& url,
                                                         IfExists if_exists) override;
  absl::StatusOr<FileInfo> Stat(const Url& url) override;
  absl::StatusOr<std::vector<FileInfo>> List(const Url& prefix, Depth depth) override;
  absl::Status Delete(const Url& url) override;
  absl::Status Rename(const Url& from, const Url& to) override;

 private:
  // What is in a folder, page by page where the server can; nothing when it is none.
  absl::StatusOr<std::vector<HdfsStatus>> Entries(const Url& folder);

  const std::unique_ptr<HdfsClient> client_;
  std::atomic<bool> pages_ = true;  // the server knows LISTSTATUS_BATCH
};

}  // namespace muster::storage
