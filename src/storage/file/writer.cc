#include "storage/file/writer.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "storage/file_errors.h"
#include "storage/temporary_name.h"

namespace muster::storage {

absl::StatusOr<std::unique_ptr<Writer>> LocalWriter::Create(const Url& url, IfExists if_exists) {
  struct stat info {};
  if (::stat(url.name.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return NotAFileName(url);
    if (if_exists == IfExists::kFail) return storage::Exists(url);
  }
  std::unique_ptr<LocalWriter> writer(new LocalWriter(url, if_exists, base::FolderOf(url.name)));
  MUSTER_RETURN_IF_ERROR(base::MakeDirectories(writer->folder_, 0777));
  MUSTER_RETURN_IF_ERROR(writer->Open());
  return writer;
}

absl::Status LocalWriter::Open() {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries && !fd_.valid(); ++i) {
    temporary_ = base::JoinPath(folder_, TemporaryName());
    fd_ = base::UniqueFd(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!fd_.valid() && errno != EEXIST) break;
  }
  if (fd_.valid()) return absl::OkStatus();
  temporary_.clear();
  return base::DiskError(errno, url_.ToString());
}

LocalWriter::~LocalWriter() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

absl::Status LocalWriter::Append(absl::string_view bytes) {
  if (status_.ok()) status_ = base::Annotate(base::WriteAll(fd_.get(), bytes), url_.ToString());
  return status_;
}

absl::Status LocalWriter::MoveIntoPlace() {
  const char* from = temporary_.c_str();
  const char* to = url_.name.c_str();
  if (if_exists_ == IfExists::kReplace) {
    if (::rename(from, to) != 0) return base::DiskError(errno, url_.ToString());
    temporary_.clear();
    return absl::OkStatus();
  }
  if (::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) {
    temporary_.clear();
    return absl::OkStatus();
  }
  // File systems without RENAME_NOREPLACE have links; the destructor removes the temporary name.
  if (errno == EINVAL || errno == ENOSYS) {
    if (::link(from, to) == 0) return absl::OkStatus();
  }
  return errno == EEXIST ? storage::Exists(url_) : base::DiskError(errno, url_.ToString());
}

absl::Status LocalWriter::Commit() {
  if (::fsync(fd_.get()) != 0) return base::DiskError(errno, url_.ToString());
  MUSTER_RETURN_IF_ERROR(MoveIntoPlace());
  return base::SyncFolder(folder_);
}

absl::Status LocalWriter::Close() {
  if (!status_.ok()) return status_;
  const absl::Status status = Commit();
  status_ = status.ok() ? AlreadyClosed(url_) : status;
  return status;
}

}  // namespace muster::storage
