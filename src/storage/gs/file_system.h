// Objects of Google Cloud Storage: gs://bucket/name.
#pragma once

#include <memory>
#include <vector>

#include "storage/file_system.h"
#include "storage/gs/client.h"
#include "storage/gs/object.h"

namespace muster::storage {

// REQUIRES: outlives the readers and writers that it returns.
class GsFileSystem final : public FileSystem {
 public:
  // Uses the settings and credentials of Google's tools (docs/storage.md).
  static absl::StatusOr<std::unique_ptr<GsFileSystem>> FromVariables(
      const base::Variables& variables);
  explicit GsFileSystem(std::unique_ptr<GsClient> client) : client_(std::move(client)) {}

  absl::StatusOr<std::unique_ptr<Reader>> OpenForReading(const Url& url) override;
  absl::StatusOr<std::unique_ptr<Writer>> OpenForWriting(const Url& url,
                                                         IfExists if_exists) override;
  absl::StatusOr<FileInfo> Stat(const Url& url) override;
  absl::StatusOr<std::vector<FileInfo>> List(const Url& prefix, Depth depth) override;
  absl::Status Delete(const Url& url) override;
  absl::Status Rename(const Url& from, const Url& to) override;

 private:
  absl::StatusOr<GsObject> Lookup(const Url& url);

  const std::unique_ptr<GsClient> client_;
};

}  // namespace muster::storage
