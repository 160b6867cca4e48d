// Small files on the local disk: read whole, replaced atomically.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// An errno as a status that says what to do; a full disk, quota or file-size limit is
// ResourceExhausted.
absl::Status DiskError(int error, absl::string_view path);

// The whole of a file. NotFound when it is absent, OutOfRange when it is larger than `max_bytes`.
absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t max_bytes = 64 << 20);

// Replaces `path` so that a reader sees the old content or the new, never a mixture: temporary
// file, rename. Does not wait for the disk: for what is also written elsewhere.
absl::Status ReplaceFile(const std::string& path, absl::string_view content, int mode = 0600);

// The same, also for a machine that stops at any point: temporary file, fsync, rename, fsync of the
// directory.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view content,
                                 int mode = 0600);

// The folder that a path names something in: "." for a bare name.
std::string FolderOf(const std::string& path);
// Waits until the names in a folder are on the disk.
absl::Status SyncFolder(const std::string& folder);

// Creates `path` and what is missing above it, each with `mode`. Existing directories are left
// alone.
absl::Status MakeDirectories(const std::string& path, int mode = 0700);

// Writes all of `data`, whatever the kernel takes at a time. Retries EINTR.
absl::Status WriteAll(int fd, absl::string_view data);

// Reads from the current position to the end. For /proc files and pipes.
absl::StatusOr<std::string> ReadAll(int fd, int64_t max_bytes = 64 << 20);

std::string JoinPath(absl::string_view directory, absl::string_view name);
// `path` made absolute against `base` and cleared of "." and "..". A URL (scheme://) is kept as it
// is.
std::string AbsolutePath(absl::string_view path, absl::string_view base);

}  // namespace muster
