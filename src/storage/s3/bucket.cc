#include "storage/s3/bucket.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/xml.h"

namespace muster::storage {
namespace {

constexpr char kDefaultRegion[] = "us-east-1";  // must not be named when a bucket is created

absl::Status OfAnotherAccount(const Url& bucket) {
  return absl::PermissionDeniedError(absl::StrCat(
      bucket.ToString(), ": a bucket of this name belongs to another account; names are shared by ",
      "all accounts, so choose another one"));
}

}  // namespace

absl::StatusOr<bool> EnsureS3Bucket(S3Client& client, const std::string& name) {
  const Url url{.scheme = "s3", .authority = name};
  // A listing and not HEAD, whose errors have no reason.
  MUSTER_ASSIGN_OR_RETURN(
      const net::Response found,
      client.Send({.url = url, .query = {{"list-type", "2"}, {"max-keys", "1"}}}));
  if (found.ok()) return false;
  const absl::Status error = S3Client::ErrorOf(url, found);
  if (!absl::IsNotFound(error)) return error;
  const std::string& region = client.options().region;
  std::string body;
  if (region != kDefaultRegion) {
    body = absl::StrCat("<CreateBucketConfiguration><LocationConstraint>", XmlEscape(region),
                        "</LocationConstraint></CreateBucketConfiguration>");
  }
  MUSTER_ASSIGN_OR_RETURN(const net::Response made,
                          client.Send({.method = "PUT", .url = url, .body = body}));
  // The response of a request that was retried, or another client was faster.
  if (absl::StrContains(made.body, "BucketAlreadyOwnedByYou")) return false;
  if (absl::StrContains(made.body, "BucketAlreadyExists")) return OfAnotherAccount(url);
  MUSTER_RETURN_IF_ERROR(S3Client::ErrorOf(url, made));
  return true;
}

}  // namespace muster::storage
