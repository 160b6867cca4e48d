// Uploads the working directory of a job to its bucket, without the parts that are already there.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/storage.h"
#include "worktree/worktree.h"

namespace muster::vertex {

// Result of SendPackages(). Small files share archives and each large file has its own, so that a
// changed file causes a small upload. An archive is named by the hash of its content, so that one
// stat decides whether to send it:
//   gs://BUCKET/muster_packages/SHA256.tar.gz
struct Sent {
  std::vector<std::string> packages;  // URLs, for Unpack
  int64_t bytes = 0;                  // size of the files in newly sent packages
};

// Returns gs://BUCKET/muster_packages, the folder of files that are named by their content.
storage::Url PackageFolder(const std::string& bucket);
// Calls `write`, unless the file exists and `again` is false. Returns whether the file was written.
absl::StatusOr<bool> SendOnce(storage::FileSystem& files, const storage::Url& url, bool again,
                              const std::function<absl::Status(storage::IfExists)>& write);

struct PackageOptions {
  std::string root;
  std::string bucket;
  bool again = false;  // send packages even if they exist
};

// Sends `files`, a listing of options.root with hashes. A failure leaves no partial package.
absl::StatusOr<Sent> SendPackages(storage::Storage& storage, const PackageOptions& options,
                                  const std::vector<worktree::WorkFile>& files);

// Unpacks packages, which are in `files`, below `folder`, which must exist. Returns DataLoss if a
// package does not match the hash in its name.
absl::Status Unpack(storage::FileSystem& files, const std::vector<std::string>& packages,
                    const std::string& folder);

}  // namespace muster::vertex
