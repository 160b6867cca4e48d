// Objects of S3 and compatible servers: s3://bucket/key.
#pragma once

#include <memory>
#include <vector>

#include "storage/file_system.h"
#include "storage/s3/client.h"

namespace muster::storage {

// Some servers ignore If-None-Match. For these, IfExists::kFail checks before writing, so that only
// concurrent writers may both succeed.
// REQUIRES: outlives the readers and writers that it returns.
class S3FileSystem final : public FileSystem {
 public:
  // Uses the settings and credentials of Amazon's tools (docs/storage.md).
  static absl::StatusOr<std::unique_ptr<S3FileSystem>> FromVariables(
      const base::Variables& variables);
  explicit S3FileSystem(std::unique_ptr<S3Client> client) : client_(std::move(client)) {}

  absl::StatusOr<std::unique_ptr<Reader>> OpenForReading(const Url& url) override;
  absl::StatusOr<std::unique_ptr<Writer>> OpenForWriting(const Url& url,
                                                         IfExists if_exists) override;
  absl::StatusOr<FileInfo> Stat(const Url& url) override;
  absl::StatusOr<std::vector<FileInfo>> List(const Url& prefix, Depth depth) override;
  absl::Status Delete(const Url& url) override;
  absl::Status Rename(const Url& from, const Url& to) override;

 private:
  absl::StatusOr<net::Response> Head(const Url& url);

  const std::unique_ptr<S3Client> client_;
};

}  // namespace muster::storage
