#include "storage/storage.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/file/file_system.h"
#include "storage/gs/file_system.h"
#include "storage/hdfs/file_system.h"
#include "storage/memory/file_system.h"
#include "storage/s3/file_system.h"

namespace muster::storage {

namespace {

// Each remote scheme of base/storage_schemes.h has its factory here; url_test.cc checks that none
// is missing.
absl::StatusOr<std::unique_ptr<FileSystem>> CreateRemote(const Url& url,
                                                         const base::Variables& variables) {
  if (url.scheme == "gs") return GsFileSystem::FromVariables(variables);
  if (url.scheme == "hdfs") return HdfsFileSystem::FromVariables(variables);
  if (url.scheme == "s3") return S3FileSystem::FromVariables(variables);
  return absl::UnimplementedError(
      absl::StrCat(url.ToString(), ": unknown scheme ", url.scheme, "://"));
}

}  // namespace

Storage::Storage(base::Variables variables)
    : variables_(std::move(variables)),
      local_(std::make_unique<LocalFileSystem>()),
      memory_(std::make_unique<MemoryFileSystem>()) {}

Storage::~Storage() = default;

absl::StatusOr<FileSystem*> Storage::For(const Url& url) {
  if (url.scheme == "file") return local_.get();
  if (url.scheme == "memory") return memory_.get();
  absl::MutexLock lock(&mutex_);
  std::unique_ptr<FileSystem>& files = remote_[url.scheme];
  if (files == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(files, CreateRemote(url, variables_));
  }
  return files.get();
}

absl::Status WriteAt(const std::string& location, absl::string_view content) {
  Storage storage;
  MUSTER_ASSIGN_OR_RETURN(const Url url, ParseUrl(location));
  MUSTER_ASSIGN_OR_RETURN(FileSystem * files, storage.For(url));
  return WriteWhole(*files, url, content);
}

absl::Status CheckIsFree(const std::string& location) {
  Storage storage;
  MUSTER_ASSIGN_OR_RETURN(const Url url, ParseUrl(location));
  MUSTER_ASSIGN_OR_RETURN(FileSystem * files, storage.For(url));
  const absl::Status taken = files->Stat(url).status();
  if (absl::IsNotFound(taken)) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(taken);
  return absl::AlreadyExistsError(absl::StrCat(location, ": exists; --force replaces it"));
}

}  // namespace muster::storage
