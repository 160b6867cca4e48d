#include "checkpoint/verify.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/bytes/digest.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "checkpoint/disk.h"

namespace muster::checkpoint {
namespace {

constexpr size_t kReadBytes = 512 << 10;

// Reads instead of mapping the file: a disk failure is then an error, not SIGBUS.
absl::StatusOr<std::string> HashOf(int fd, absl::FunctionRef<void(int64_t)> read) {
  base::Sha256 hash;
  std::vector<std::byte> block(kReadBytes);
  for (;;) {
    const ssize_t n = ::read(fd, block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::DataLossError(absl::ErrnoToStatus(errno, "cannot be read").message());
    if (n == 0) return hash.Finish();
    hash.Update(absl::MakeConstSpan(block.data(), static_cast<size_t>(n)));
    read(n);
  }
}

}  // namespace

absl::Status VerifyFile(const std::string& folder, const ManifestFile& file,
                        absl::FunctionRef<void(int64_t)> read) {
  const std::string path = base::JoinPath(folder, file.name);
  const auto opened = OpenRegular(folder, file.name);
  if (!opened.ok()) return absl::DataLossError(opened.status().message());
  if (opened->bytes != file.bytes) {
    return absl::DataLossError(
        absl::StrCat(path, ": has ", opened->bytes, " bytes instead of ", file.bytes));
  }
  ::posix_fadvise(opened->fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  const auto digest = HashOf(opened->fd.get(), read);
  if (!digest.ok()) return base::Annotate(digest.status(), path);
  if (*digest != file.sha256) {
    return absl::DataLossError(
        absl::StrCat(path, ": is damaged: its SHA-256 differs from the manifest's"));
  }
  return absl::OkStatus();
}

std::vector<absl::Status> VerifyFiles(const std::string& folder, const Manifest& manifest,
                                      absl::FunctionRef<void(int64_t)> read) {
  std::vector<absl::Status> damaged;
  for (const ManifestFile& file : manifest.files) {
    absl::Status status = VerifyFile(folder, file, read);
    if (!status.ok()) damaged.push_back(std::move(status));
  }
  return damaged;
}

}  // namespace muster::checkpoint
