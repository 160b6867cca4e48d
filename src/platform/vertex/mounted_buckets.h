// Buckets as Vertex AI mounts them in the containers of custom training, by Cloud Storage FUSE.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/file/file_system.h"

namespace muster::vertex {

// gs://BUCKET/NAME is the file /gcs/BUCKET/NAME.
inline constexpr char kMountFolder[] = "/gcs";
storage::Url MountedUrl(const storage::Url& url);

// Reads gs:// URLs below kMountFolder. Everything else is Unimplemented. Thread-safe.
class MountedBuckets final : public storage::FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<storage::Reader>> OpenForReading(const storage::Url& url) override;
  absl::StatusOr<std::unique_ptr<storage::Writer>> OpenForWriting(
      const storage::Url& url, storage::IfExists if_exists) override;
  absl::StatusOr<storage::FileInfo> Stat(const storage::Url& url) override;
  absl::StatusOr<std::vector<storage::FileInfo>> List(const storage::Url& prefix,
                                                      storage::Depth depth) override;
  absl::Status Delete(const storage::Url& url) override;
  absl::Status Rename(const storage::Url& from, const storage::Url& to) override;

 private:
  storage::LocalFileSystem files_;
};

}  // namespace muster::vertex
