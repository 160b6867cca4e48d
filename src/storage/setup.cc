#include "storage/setup.h"

#include <sys/stat.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "storage/gs/bucket.h"
#include "storage/hdfs/file_system.h"
#include "storage/s3/bucket.h"
#include "storage/s3/file_system.h"
#include "storage/temporary_name.h"

namespace muster::storage {
namespace {

constexpr char kGoogleLocation[] = "us-central1";
constexpr char kProbe[] = "written by muster to check the permissions; may be removed\n";

bool HasFolders(const Url& url) { return url.scheme == "hdfs" || url.scheme == "file"; }

base::Variables WithRegion(const base::Variables& variables, const std::string& region) {
  if (region.empty()) return variables;
  return [variables, region](const std::string& name) {
    return name == "AWS_REGION" ? region : variables(name);
  };
}

absl::StatusOr<bool> MakeGoogleBucket(const Url& url, const NewBucketOptions& options,
                                      const base::Variables& variables) {
  MUSTER_ASSIGN_OR_RETURN(const auto client, GsClient::FromVariables(variables));
  NewBucket bucket{.name = url.authority,
                   .project = options.project.empty() ? GoogleProject(variables) : options.project,
                   .location = options.location.empty() ? kGoogleLocation : options.location};
  if (bucket.project.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(url.ToString(), ": a new bucket needs a project that pays for it; name it ",
                     "with --project, or set GOOGLE_CLOUD_PROJECT"));
  }
  return EnsureBucket(*client, bucket);
}

absl::StatusOr<bool> MakeLocalFolder(const Url& url) {
  struct stat info {};
  const bool is_new = ::stat(url.name.c_str(), &info) != 0;
  MUSTER_RETURN_IF_ERROR(base::MakeDirectories(WithoutSlash(url).name, 0777));
  return is_new;
}

// Returns the nearest folder at or above `folder` that exists.
absl::StatusOr<Url> Existing(FileSystem& files, Url folder) {
  folder = folder.AsFolder();
  while (folder.name.size() > 1) {
    const Url bare = WithoutSlash(folder);
    MUSTER_ASSIGN_OR_RETURN(const auto found, files.List(bare, Depth::kHere));
    for (const FileInfo& info : found) {
      if (info.url.name == folder.name) return folder;
      if (info.url.name == bare.name) {
        return absl::FailedPreconditionError(
            absl::StrCat(bare.ToString(), ": is a file; expected a folder"));
      }
    }
    folder = folder.WithName(bare.name.substr(0, bare.name.rfind('/') + 1));
  }
  return folder;
}

// Returns the command that lets the account of these credentials write to the URL; "" for a path.
std::string GrantFor(const Url& url, const base::Variables& variables) {
  if (url.scheme == "gs") {
    return absl::StrCat("grant it with: gcloud storage buckets add-iam-policy-binding gs://",
                        url.authority, " --member=", GoogleMember(variables),
                        " --role=roles/storage.objectUser");
  }
  if (url.scheme == "s3") {
    return absl::StrCat("its policy must allow s3:ListBucket on arn:aws:s3:::", url.authority,
                        ", and s3:PutObject, s3:GetObject and s3:DeleteObject on arn:aws:s3:::",
                        url.authority, "/*");
  }
  if (url.scheme != "hdfs") return "";
  const auto options = HdfsOptions::FromVariables(variables);
  return absl::StrCat("grant it with: hdfs dfs -setfacl -m user:",
                      options.ok() ? options->user : "USER", ":rwx ", url.name);
}

absl::Status TryFile(FileSystem& files, const Url& url) {
  MUSTER_RETURN_IF_ERROR(WriteWhole(files, url, kProbe));
  const absl::Status read = ReadWhole(files, url).status();
  const absl::Status removed = files.Delete(url);
  MUSTER_RETURN_IF_ERROR(read);
  return removed;
}

}  // namespace

absl::StatusOr<bool> MakeBucketOrFolder(const Url& url, const NewBucketOptions& options,
                                        const base::Variables& variables) {
  if (url.scheme == "gs") return MakeGoogleBucket(url, options, variables);
  if (url.scheme == "s3") {
    MUSTER_ASSIGN_OR_RETURN(const auto client,
                            S3Client::FromVariables(WithRegion(variables, options.location)));
    return EnsureS3Bucket(*client, url.authority);
  }
  if (url.scheme == "hdfs") {
    MUSTER_ASSIGN_OR_RETURN(const auto client, HdfsClient::FromVariables(variables));
    return client->MakeFolder(url);
  }
  if (url.scheme == "file") return MakeLocalFolder(url);
  return false;
}

absl::StatusOr<std::string> AccountOf(const Url& url, const base::Variables& variables) {
  if (url.scheme == "gs") return GoogleAccount(variables);
  if (url.scheme == "s3") {
    MUSTER_ASSIGN_OR_RETURN(const AwsCredentials found, AwsCredentialChain(variables).Get());
    return absl::StrCat("access key ", found.access_key, " of ", found.origin);
  }
  if (url.scheme != "hdfs") return "";
  MUSTER_ASSIGN_OR_RETURN(const HdfsOptions options, HdfsOptions::FromVariables(variables));
  const bool token = !options.token.empty() || !options.token_file.empty();
  return token ? "a delegation token" : absl::StrCat("user ", options.user);
}

absl::Status CheckWritable(Storage& storage, const Url& folder, const base::Variables& variables) {
  MUSTER_ASSIGN_OR_RETURN(FileSystem * files, storage.For(folder));
  Url where = folder.AsFolder();
  if (HasFolders(folder)) {
    MUSTER_ASSIGN_OR_RETURN(where, Existing(*files, where));
  }
  const absl::Status status = TryFile(*files, where.Child(TemporaryName()));
  if (!absl::IsPermissionDenied(status)) return status;
  const std::string grant = GrantFor(where, variables);
  return grant.empty() ? status
                       : absl::PermissionDeniedError(absl::StrCat(status.message(), "; ", grant));
}

}  // namespace muster::storage
