#include "storage/storage.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/file/file_system.h"
#include "storage/hdfs/file_system.h"
#include "storage/memory/file_system.h"
#include "storage/s3/file_system.h"

namespace muster::storage {

Storage::Storage(Variables variables)
    : variables_(std::move(variables)),
      local_(std::make_unique<LocalFileSystem>()),
      memory_(std::make_unique<MemoryFileSystem>()) {}

Storage::~Storage() = default;

absl::StatusOr<FileSystem*> Storage::For(const Url& url) {
  if (url.scheme == "file") return local_.get();
  if (url.scheme == "memory") return memory_.get();
  absl::MutexLock lock(&mutex_);
  if (url.scheme == "s3") {
    if (s3_ == nullptr) {
      MUSTER_ASSIGN_OR_RETURN(s3_, S3FileSystem::FromVariables(variables_));
    }
    return s3_.get();
  }
  if (url.scheme == "hdfs") {
    if (hdfs_ == nullptr) {
      MUSTER_ASSIGN_OR_RETURN(hdfs_, HdfsFileSystem::FromVariables(variables_));
    }
    return hdfs_.get();
  }
  return absl::UnimplementedError(absl::StrCat(
      url.ToString(), ": ", url.scheme, ":// is not there yet; s3://, hdfs:// and paths are"));
}

}  // namespace muster::storage
