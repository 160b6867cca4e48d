// File operations on checkpoints: open without following links, rename, remove.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/files/unique_fd.h"
#include "nlohmann/json.hpp"

namespace muster::checkpoint {

inline absl::Span<const std::byte> AsBytes(absl::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// Writes all of `bytes` to `fd`, the file at `path`.
absl::Status WriteFully(int fd, absl::Span<const std::byte> bytes, absl::string_view path);

struct OpenedFile {
  base::UniqueFd fd;
  int64_t bytes = 0;
};
// Opens a regular file of `folder` for reading. Returns DataLoss for a link, a pipe or the like.
absl::StatusOr<OpenedFile> OpenRegular(const std::string& folder, const std::string& name);

// Reads a file of `folder`, or parses text, that is one JSON object within the limits of format.h.
// Returns DataLoss otherwise.
absl::StatusOr<nlohmann::json> ReadJsonObject(const std::string& folder, const std::string& name);
absl::StatusOr<nlohmann::json> ParseJsonObject(absl::string_view text);

// Returns whether anything has that name, including a broken link.
bool Exists(const std::string& path);
absl::Status Rename(const std::string& from, const std::string& to);

// Removes the folder, its manifest first, so that an interrupted removal leaves no checkpoint.
absl::Status RemoveFolder(const std::string& path);

}  // namespace muster::checkpoint
