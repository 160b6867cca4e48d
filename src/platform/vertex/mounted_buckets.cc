#include "platform/vertex/mounted_buckets.h"

#include "absl/strings/str_cat.h"

namespace muster::vertex {
namespace {

absl::Status ReadOnly(const storage::Url& url) {
  return absl::UnimplementedError(
      absl::StrCat(url.ToString(), ": the mounted bucket is only read here"));
}

}  // namespace

storage::Url MountedUrl(const storage::Url& url) {
  return storage::LocalUrl(absl::StrCat(kMountFolder, "/", url.authority, "/", url.name));
}

absl::StatusOr<std::unique_ptr<storage::Reader>> MountedBuckets::OpenForReading(
    const storage::Url& url) {
  return files_.OpenForReading(MountedUrl(url));
}

absl::StatusOr<storage::FileInfo> MountedBuckets::Stat(const storage::Url& url) {
  return files_.Stat(MountedUrl(url));
}

absl::StatusOr<std::unique_ptr<storage::Writer>> MountedBuckets::OpenForWriting(
    const storage::Url& url, storage::IfExists /*if_exists*/) {
  return ReadOnly(url);
}

absl::StatusOr<std::vector<storage::FileInfo>> MountedBuckets::List(const storage::Url& prefix,
                                                                    storage::Depth /*depth*/) {
  return ReadOnly(prefix);
}

absl::Status MountedBuckets::Delete(const storage::Url& url) { return ReadOnly(url); }

absl::Status MountedBuckets::Rename(const storage::Url& from, const storage::Url& /*to*/) {
  return ReadOnly(from);
}

}  // namespace muster::vertex
