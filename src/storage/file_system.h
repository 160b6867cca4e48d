// Files wherever they are kept: the same few operations for every storage.
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

// A file that is read from any place. Thread-safe.
class Reader {
 public:
  virtual ~Reader() = default;

  // Of the file as it was when it was opened.
  virtual int64_t size() const = 0;
  // Fills `buffer` with what stands at `offset`. Fewer bytes only where the file ends, none at or
  // beyond its end. Aborted when the file is another one now, where that can be told.
  virtual absl::StatusOr<size_t> Read(int64_t offset, absl::Span<char> buffer) = 0;
};

// A file that is written from front to back. Nobody sees anything of it before Close() has
// succeeded; destroyed without that, it leaves nothing. After a failure every call fails the same
// way. Not thread-safe.
class Writer {
 public:
  virtual ~Writer() = default;

  // The bytes are taken over before this returns.
  virtual absl::Status Append(absl::string_view bytes) = 0;
  // Makes all of it visible at once, and durable. Called once, last.
  virtual absl::Status Close() = 0;
};

enum class IfExists {
  kReplace,
  kFail,  // AlreadyExists, at the latest by Close(); of several writers one succeeds
};

struct FileInfo {
  Url url;  // of a folder with a slash at its end
  int64_t bytes = 0;
  absl::Time modified = absl::InfinitePast();  // InfinitePast: not known
  std::string md5;                             // lower-case hexadecimal; "": not known

  bool is_folder() const { return !url.name.empty() && url.name.back() == '/'; }
};

enum class Depth {
  kAll,   // every file, however deep
  kHere,  // files, and folders where a name goes on behind a slash
};

// One kind of storage. Folders are no more than slashes in names: writing makes them, and one
// without files need not be there. Every call has a time-out, is repeated where that is safe, and
// fails with one of:
//   NotFound            no such file, or no such bucket
//   AlreadyExists       see IfExists
//   PermissionDenied, Unauthenticated
//   ResourceExhausted   full disk, quota, too many requests
//   Unavailable         it did not answer, or not in time; may be tried again later
//   FailedPrecondition  a folder where a file is needed, or the other way round
//   Unimplemented       this storage cannot do that
// The message names the file and says what to do, and never holds a secret. Thread-safe.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual absl::StatusOr<std::unique_ptr<Reader>> OpenForReading(const Url& url) = 0;
  virtual absl::StatusOr<std::unique_ptr<Writer>> OpenForWriting(const Url& url,
                                                                 IfExists if_exists) = 0;
  // Of a file. NotFound for a folder.
  virtual absl::StatusOr<FileInfo> Stat(const Url& url) = 0;
  // Everything whose name begins with that of `prefix`, which need not end at a slash, in the order
  // of the names' bytes. Empty when there is nothing.
  virtual absl::StatusOr<std::vector<FileInfo>> List(const Url& prefix, Depth depth) = 0;
  // Whether it was there is not told: afterwards it is not. A name with a slash at its end is that
  // of a folder, of which nothing stays where folders are more than names; FailedPrecondition when
  // there is something in it.
  virtual absl::Status Delete(const Url& url) = 0;
  // At once, in place of what is at `to`. Unimplemented where that is not possible.
  virtual absl::Status Rename(const Url& from, const Url& to) = 0;
};

// The whole of a small file, begun again when it is replaced meanwhile. OutOfRange when it is
// larger than `max_bytes`.
absl::StatusOr<std::string> ReadWhole(FileSystem& files, const Url& url,
                                      int64_t max_bytes = 64 << 20);
absl::Status WriteWhole(FileSystem& files, const Url& url, absl::string_view content,
                        IfExists if_exists = IfExists::kReplace);

// Whether the name holds a *, ? or [.
bool IsGlob(const Url& url);
// The files whose names match the pattern, as in a shell: *, ? and [a-z] match within a part of a
// name, \ takes away the meaning of what follows. Ordered as List() does; empty when there are
// none.
absl::StatusOr<std::vector<FileInfo>> Glob(FileSystem& files, const Url& pattern);

}  // namespace muster::storage
