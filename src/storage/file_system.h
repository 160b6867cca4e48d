// The interface of every storage: reading, writing, listing, deleting and renaming files by URL.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "storage/url.h"

namespace muster::storage {

// Random access to one file. Thread-safe.
class Reader {
 public:
  virtual ~Reader() = default;

  // Returns the size of the file when it was opened.
  virtual int64_t size() const = 0;
  // Reads up to buffer.size() bytes at `offset`. Returns fewer only at the end of the file, and 0
  // at or beyond it. Returns Aborted if the file was replaced since it was opened, where the
  // storage can detect that.
  virtual absl::StatusOr<size_t> Read(int64_t offset, absl::Span<char> buffer) = 0;
};

// Writes one file sequentially. The file becomes visible when Close() succeeds; destroying the
// writer before that discards it. After a failure every call returns the same error. Not
// thread-safe.
class Writer {
 public:
  virtual ~Writer() = default;

  // Does not keep a reference to `bytes`.
  virtual absl::Status Append(absl::string_view bytes) = 0;
  // Makes the file visible atomically, and durable. REQUIRES: called at most once, last.
  virtual absl::Status Close() = 0;
};

enum class IfExists {
  kReplace,
  kFail,  // AlreadyExists, at the latest from Close(); of concurrent writers exactly one succeeds
};

struct FileInfo {
  Url url;  // ends with a slash for a folder
  int64_t bytes = 0;
  absl::Time modified = absl::InfinitePast();  // InfinitePast if unknown
  std::string md5;                             // lower-case hexadecimal; "" if unknown

  bool is_folder() const { return !url.name.empty() && url.name.back() == '/'; }
};

enum class Depth {
  kAll,   // all files below the prefix
  kHere,  // files and folders up to the next slash
};

// One kind of storage. Folders are slashes in names: writing a file creates them, and an empty
// folder need not exist. Every call has a timeout, is retried where that is safe, and fails with
// one of:
//   NotFound            no such file or bucket
//   AlreadyExists       see IfExists
//   PermissionDenied, Unauthenticated
//   ResourceExhausted   disk full, quota exceeded, too many requests
//   Unavailable         no response in time; may be retried later
//   FailedPrecondition  a folder where a file is expected, or vice versa
//   Unimplemented       not supported by this storage
// The message names the file and the remedy, and never contains a secret. Thread-safe.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual absl::StatusOr<std::unique_ptr<Reader>> OpenForReading(const Url& url) = 0;
  virtual absl::StatusOr<std::unique_ptr<Writer>> OpenForWriting(const Url& url,
                                                                 IfExists if_exists) = 0;
  // Returns the metadata of a file. Returns NotFound for a folder.
  virtual absl::StatusOr<FileInfo> Stat(const Url& url) = 0;
  // Returns everything whose name begins with that of `prefix`, which need not end with a slash, in
  // byte order of the names. Returns an empty list if there is nothing.
  virtual absl::StatusOr<std::vector<FileInfo>> List(const Url& prefix, Depth depth) = 0;
  // Deletes a file; OK if it does not exist. A name that ends with a slash is a folder: it is
  // removed where the storage has folders. Returns FailedPrecondition if that folder is not empty.
  virtual absl::Status Delete(const Url& url) = 0;
  // Renames a file atomically, replacing `to`. Returns Unimplemented where that is not possible.
  virtual absl::Status Rename(const Url& from, const Url& to) = 0;
};

// Returns the content of a small file. Retries if the file is replaced while it is read. Returns
// OutOfRange if it is larger than `max_bytes`.
absl::StatusOr<std::string> ReadWhole(FileSystem& files, const Url& url,
                                      int64_t max_bytes = 64 << 20);
absl::Status WriteWhole(FileSystem& files, const Url& url, absl::string_view content,
                        IfExists if_exists = IfExists::kReplace);

// Returns whether the name contains *, ? or [.
bool IsGlob(const Url& url);
// Returns the files whose names match a shell pattern, ordered as by List(). *, ? and [a-z] do not
// match a slash; \ escapes the next character. Returns an empty list if none match.
absl::StatusOr<std::vector<FileInfo>> Glob(FileSystem& files, const Url& pattern);

}  // namespace muster::storage
