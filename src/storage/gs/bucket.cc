#include "storage/gs/bucket.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"

namespace muster::storage {
namespace {

using To = GsRequest::To;

absl::Status NotOurs(const NewBucket& bucket) {
  return absl::PermissionDeniedError(absl::StrCat(
      "gs://", bucket.name,
      ": the bucket exists, but these credentials may not use it; name another, ",
      "or have its owner grant the role: gcloud storage buckets add-iam-policy-binding gs://",
      bucket.name, " --member=serviceAccount:EMAIL --role=roles/storage.admin"));
}

absl::Status MayNotCreate(const NewBucket& bucket, absl::string_view why) {
  return absl::PermissionDeniedError(absl::StrCat(
      "gs://", bucket.name, ": no such bucket, and these credentials may not create it in project ",
      bucket.project, "; create it with `gcloud storage buckets create gs://", bucket.name,
      " --project=", bucket.project, " --location=", bucket.location, "`, or get the role ",
      "roles/storage.admin (", why, ")"));
}

// Returns false, as EnsureBucket() does for a bucket that exists, if its objects can be listed. An
// account may have access to the objects of a bucket without access to the bucket's metadata.
absl::StatusOr<bool> CheckUsable(GsClient& client, const NewBucket& bucket) {
  const GsRequest list{.to = To::kList,
                       .url = {.scheme = "gs", .authority = bucket.name},
                       .query = {{"maxResults", "1"}, {"fields", "nextPageToken"}}};
  MUSTER_ASSIGN_OR_RETURN(const net::Response listed, client.Send(list));
  if (!listed.ok()) return NotOurs(bucket);
  return false;
}

}  // namespace

absl::StatusOr<bool> EnsureBucket(GsClient& client, const NewBucket& bucket) {
  const Url url{.scheme = "gs", .authority = bucket.name};
  const GsRequest lookup{.to = To::kBucket, .url = url, .query = {{"fields", "name"}}};
  MUSTER_ASSIGN_OR_RETURN(const net::Response found, client.Send(lookup));
  if (found.status == 403) return CheckUsable(client, bucket);
  if (found.ok()) return false;
  if (found.status != 404) return GsClient::ErrorOf(lookup, found);
  const std::string body =
      nlohmann::json{{"name", bucket.name},
                     {"location", bucket.location},
                     {"iamConfiguration", {{"uniformBucketLevelAccess", {{"enabled", true}}}}}}
          .dump();
  const GsRequest create{.method = "POST",
                         .to = To::kBuckets,
                         .url = url,
                         .query = {{"project", bucket.project}},
                         .headers = {{"Content-Type", "application/json"}},
                         .body = body};
  MUSTER_ASSIGN_OR_RETURN(const net::Response created, client.Send(create));
  if (created.status == 409) {
    // The bucket was created since the lookup, or its owner hides it from us.
    return CheckUsable(client, bucket);
  }
  const absl::Status error = GsClient::ErrorOf(create, created);
  if (absl::IsPermissionDenied(error)) return MayNotCreate(bucket, error.message());
  MUSTER_RETURN_IF_ERROR(error);
  return true;
}

}  // namespace muster::storage
