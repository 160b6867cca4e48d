// Small files on the local disk: read whole, replaced atomically.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::base {

// Converts an errno to a status that names `path`. A full disk, an exceeded quota and an exceeded
// file-size limit become ResourceExhausted with a remedy.
absl::Status DiskError(int error, absl::string_view path);

// Returns the content of a file, NotFound if it is absent, or OutOfRange if it is larger than
// `max_bytes`.
absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t max_bytes = 64 << 20);

// Replaces `path` atomically (temporary file, rename): a reader gets the old content or the new.
// Does not sync, so the change may be lost on power failure. For data that is also stored
// elsewhere.
absl::Status ReplaceFile(const std::string& path, absl::string_view content, int mode = 0600);

// As ReplaceFile, and durable on return: temporary file, fsync, rename, fsync of the directory.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view content,
                                 int mode = 0600);

// Returns the parent folder of a path; "." for a bare name.
std::string FolderOf(const std::string& path);
// Syncs a folder, so that creations, renames and removals in it are durable.
absl::Status SyncFolder(const std::string& folder);

// Creates `path` and its missing parents, each with `mode`. Existing directories keep their mode.
absl::Status MakeDirectories(const std::string& path, int mode = 0700);

// Writes all of `data`; continues after short writes and EINTR.
absl::Status WriteAll(int fd, absl::string_view data);

// Reads from the current position to the end; also works for /proc files and pipes. Returns
// OutOfRange if there are more than `max_bytes`.
absl::StatusOr<std::string> ReadAll(int fd, int64_t max_bytes = 64 << 20);

std::string JoinPath(absl::string_view directory, absl::string_view name);
// Returns `path` made absolute against `base`, without "." and "..". A URL (scheme://) is returned
// unchanged.
std::string AbsolutePath(absl::string_view path, absl::string_view base);

}  // namespace muster::base
