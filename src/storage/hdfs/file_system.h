// Files of HDFS over WebHDFS: hdfs://host:port/path.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "storage/file_system.h"
#include "storage/hdfs/client.h"

namespace muster::storage {

// The port is that of the namenode's web server. Writes to a TemporaryName() in the target's
// folder, which List() leaves out; a killed process leaves that file behind. A folder remains when
// its last file is deleted.
// REQUIRES: outlives the readers and writers that it returns.
class HdfsFileSystem final : public FileSystem {
 public:
  // Uses the settings described in docs/storage.md.
  static absl::StatusOr<std::unique_ptr<HdfsFileSystem>> FromVariables(
      const base::Variables& variables);
  explicit HdfsFileSystem(std::unique_ptr<HdfsClient> client) : client_(std::move(client)) {}

  absl::StatusOr<std::unique_ptr<Reader>> OpenForReading(const Url& url) override;
  absl::StatusOr<std::unique_ptr<Writer>> OpenForWriting(const Url& url,
                                                         IfExists if_exists) override;
  absl::StatusOr<FileInfo> Stat(const Url& url) override;
  absl::StatusOr<std::vector<FileInfo>> List(const Url& prefix, Depth depth) override;
  absl::Status Delete(const Url& url) override;
  absl::Status Rename(const Url& from, const Url& to) override;

 private:
  // Returns the entries of a folder, in pages if the server supports that; none if it does not
  // exist.
  absl::StatusOr<std::vector<HdfsStatus>> Entries(const Url& folder);

  const std::unique_ptr<HdfsClient> client_;
  std::atomic<bool> pages_ = true;  // false once the server rejected LISTSTATUS_BATCH
};

}  // namespace muster::storage
