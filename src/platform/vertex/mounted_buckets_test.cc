#include "platform/vertex/mounted_buckets.h"

#include "gtest/gtest.h"

namespace muster::vertex {
namespace {

TEST(VertexMountedBuckets, AreFoldersBelowTheMount) {
  EXPECT_EQ(MountedUrl({.scheme = "gs", .authority = "b", .name = "muster_x/job.json"}),
            storage::LocalUrl("/gcs/b/muster_x/job.json"));
}

TEST(VertexMountedBuckets, AreOnlyRead) {
  MountedBuckets buckets;
  const storage::Url url{.scheme = "gs", .authority = "no-such-bucket", .name = "x"};
  EXPECT_EQ(buckets.OpenForReading(url).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(buckets.Stat(url).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(buckets.OpenForWriting(url, storage::IfExists::kFail).status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(buckets.List(url, storage::Depth::kAll).status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(buckets.Delete(url).code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(buckets.Rename(url, url).code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace muster::vertex
