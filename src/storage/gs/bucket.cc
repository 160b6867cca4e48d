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
      ": the bucket is there, and these credentials may not use it; name another, ",
      "or let its owner give you the role: gcloud storage buckets add-iam-policy-binding gs://",
      bucket.name, " --member=serviceAccount:EMAIL --role=roles/storage.admin"));
}

absl::Status MayNotMake(const NewBucket& bucket, absl::string_view why) {
  return absl::PermissionDeniedError(
      absl::StrCat("gs://", bucket.name,
                   ": there is no such bucket, and these credentials may not make it in project ",
                   bucket.project, "; make it with `gcloud storage buckets create gs://",
                   bucket.name, " --project=", bucket.project, " --location=", bucket.location,
                   "`, or get the role ", "roles/storage.admin (", why, ")"));
}

// Who may work with what is in a bucket may still not look at the bucket itself.
absl::Status CheckUsable(GsClient& client, const NewBucket& bucket) {
  const GsRequest list{.to = To::kList,
                       .url = {.scheme = "gs", .place = bucket.name},
                       .query = {{"maxResults", "1"}, {"fields", "nextPageToken"}}};
  MUSTER_ASSIGN_OR_RETURN(const net::Response listed, client.Send(list));
  return listed.ok() ? absl::OkStatus() : NotOurs(bucket);
}

}  // namespace

absl::Status EnsureBucket(GsClient& client, const NewBucket& bucket) {
  const Url url{.scheme = "gs", .place = bucket.name};
  const GsRequest look{.to = To::kBucket, .url = url, .query = {{"fields", "name"}}};
  MUSTER_ASSIGN_OR_RETURN(const net::Response found, client.Send(look));
  if (found.status == 403) return CheckUsable(client, bucket);
  if (found.status != 404) return GsClient::ErrorOf(look, found);
  const std::string body =
      nlohmann::json{{"name", bucket.name},
                     {"location", bucket.location},
                     {"iamConfiguration", {{"uniformBucketLevelAccess", {{"enabled", true}}}}}}
          .dump();
  const GsRequest make{.method = "POST",
                       .to = To::kBuckets,
                       .url = url,
                       .query = {{"project", bucket.project}},
                       .headers = {{"Content-Type", "application/json"}},
                       .body = body};
  MUSTER_ASSIGN_OR_RETURN(const net::Response made, client.Send(make));
  if (made.status == 409) {
    // A moment ago it was not there: another of ours has made it, or it is a stranger's.
    return CheckUsable(client, bucket);
  }
  const absl::Status error = GsClient::ErrorOf(make, made);
  return absl::IsPermissionDenied(error) ? MayNotMake(bucket, error.message()) : error;
}

}  // namespace muster::storage
