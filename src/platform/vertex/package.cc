#include "platform/vertex/package.h"

#include <algorithm>
#include <bit>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/bytes/digest.h"
#include "base/files/confined_folder.h"
#include "base/status_macros.h"
#include "storage/read_ahead.h"
#include "worktree/archive.h"

namespace muster::vertex {
namespace {

constexpr int64_t kLargeFileBytes = 4 << 20;
constexpr int64_t kArchiveTargetBytes = 8 << 20;  // approximate size of an archive of small files
constexpr size_t kMaxUploads = 4;                 // concurrent uploads
constexpr char kFolder[] = "muster_packages";
constexpr char kSuffix[] = ".tar.gz";

// The archive of a small file depends on its path and on the rounded total size, so that added,
// removed and changed files leave most other archives as they are.
std::vector<std::vector<worktree::WorkFile>> Split(const std::vector<worktree::WorkFile>& files) {
  int64_t small = 0;
  for (const worktree::WorkFile& file : files) small += file.size < kLargeFileBytes ? file.size : 0;
  const size_t shares = std::bit_ceil(static_cast<size_t>(small / kArchiveTargetBytes + 1));
  std::vector<std::vector<worktree::WorkFile>> parts(shares);
  for (const worktree::WorkFile& file : files) {
    if (file.size < kLargeFileBytes) {
      parts[base::Fingerprint(file.path) % shares].push_back(file);
    } else {
      parts.push_back({file});
    }
  }
  return parts;
}

std::string NameOf(const std::vector<worktree::WorkFile>& files) {
  worktree::PackageDigest digest;
  for (const worktree::WorkFile& file : files) digest.Add(file);
  return absl::StrCat(digest.Finish(), kSuffix);
}

absl::Status Write(storage::FileSystem& there, const storage::Url& url, const std::string& root,
                   const std::vector<worktree::WorkFile>& files, storage::IfExists if_exists) {
  MUSTER_ASSIGN_OR_RETURN(const auto writer, there.OpenForWriting(url, if_exists));
  worktree::Gzip gzip([&writer](absl::string_view bytes) { return writer->Append(bytes); });
  MUSTER_RETURN_IF_ERROR(worktree::WriteTar(
      root, files, [&gzip](absl::string_view bytes) { return gzip.Write(bytes); }));
  MUSTER_RETURN_IF_ERROR(gzip.Finish());
  return writer->Close();
}

// Returns the size of the files sent, or 0 if the package exists.
absl::StatusOr<int64_t> SendPart(storage::FileSystem& there, const storage::Url& url,
                                 const PackageOptions& options,
                                 const std::vector<worktree::WorkFile>& part) {
  MUSTER_ASSIGN_OR_RETURN(const bool sent,
                          SendOnce(there, url, options.again, [&](storage::IfExists if_exists) {
                            return Write(there, url, options.root, part, if_exists);
                          }));
  if (!sent) return 0;
  int64_t bytes = 0;
  for (const worktree::WorkFile& file : part) bytes += file.size;
  return bytes;
}

absl::Status UnpackOne(storage::FileSystem& files, const std::string& package,
                       base::ConfinedFolder& folder) {
  MUSTER_ASSIGN_OR_RETURN(const storage::Url url, storage::ParseUrl(package));
  MUSTER_ASSIGN_OR_RETURN(const auto reader, files.OpenForReading(url));
  storage::ReadAhead ahead(*reader, url);
  worktree::Unpacker unpacker(folder);
  for (;;) {
    MUSTER_ASSIGN_OR_RETURN(const absl::string_view bytes, ahead.Next());
    if (bytes.empty()) break;
    MUSTER_RETURN_IF_ERROR(unpacker.Write(bytes));
  }
  MUSTER_ASSIGN_OR_RETURN(const std::string digest, unpacker.Finish());
  if (absl::StrCat(digest, kSuffix) == url.Basename()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("its content has the hash ", digest));
}

// The package was damaged or overwritten by others; only its sender can replace it.
absl::Status Altered(const std::string& package, absl::string_view why) {
  return absl::DataLossError(
      absl::StrCat(package, " does not match its name: ", why,
                   "; it is not used. Submit the job again with --rebuild to replace it"));
}

}  // namespace

storage::Url PackageFolder(const std::string& bucket) {
  return {.scheme = "gs", .authority = bucket, .name = kFolder};
}

absl::StatusOr<bool> SendOnce(storage::FileSystem& files, const storage::Url& url, bool again,
                              const std::function<absl::Status(storage::IfExists)>& write) {
  if (!again) {
    const absl::Status known = files.Stat(url).status();
    if (known.ok()) return false;
    if (!absl::IsNotFound(known)) return known;
  }
  const absl::Status sent = write(again ? storage::IfExists::kReplace : storage::IfExists::kFail);
  // AlreadyExists: another process has sent the same file meanwhile.
  if (!absl::IsAlreadyExists(sent)) MUSTER_RETURN_IF_ERROR(sent);
  return true;
}

absl::StatusOr<Sent> SendPackages(storage::Storage& storage, const PackageOptions& options,
                                  const std::vector<worktree::WorkFile>& files) {
  const storage::Url folder = PackageFolder(options.bucket);
  MUSTER_ASSIGN_OR_RETURN(storage::FileSystem * there, storage.For(folder));
  std::vector<std::vector<worktree::WorkFile>> parts = Split(files);
  std::erase_if(parts, [](const std::vector<worktree::WorkFile>& part) { return part.empty(); });
  Sent sent;
  for (const auto& part : parts) sent.packages.push_back(folder.Child(NameOf(part)).ToString());
  absl::Mutex mutex;
  size_t next = 0;
  absl::Status first;
  const auto work = [&] {
    for (;;) {
      size_t i = 0;
      {
        const absl::MutexLock held(&mutex);
        if (next == parts.size() || !first.ok()) return;
        i = next++;
      }
      const auto bytes = SendPart(*there, folder.Child(NameOf(parts[i])), options, parts[i]);
      const absl::MutexLock held(&mutex);
      first.Update(bytes.status());
      if (bytes.ok()) sent.bytes += *bytes;
    }
  };
  std::vector<std::jthread> threads;
  for (size_t i = 1; i < std::min(kMaxUploads, parts.size()); ++i) threads.emplace_back(work);
  work();
  threads.clear();
  MUSTER_RETURN_IF_ERROR(first);
  return sent;
}

absl::Status Unpack(storage::FileSystem& files, const std::vector<std::string>& packages,
                    const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(base::ConfinedFolder below, base::ConfinedFolder::Open(folder));
  for (const std::string& package : packages) {
    const absl::Status unpacked = UnpackOne(files, package, below);
    if (absl::IsDataLoss(unpacked)) return Altered(package, unpacked.message());
    MUSTER_RETURN_IF_ERROR(base::Annotate(unpacked, package));
  }
  return absl::OkStatus();
}

}  // namespace muster::vertex
