// Files and folders of a checkpoint: opened without following links, locked, removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/unique_fd.h"
#include "nlohmann/json.hpp"

namespace muster::checkpoint {

inline absl::Span<const std::byte> AsBytes(absl::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// Writes all of `bytes` to `fd`, the file at `path`.
absl::Status WriteFully(int fd, absl::Span<const std::byte> bytes, absl::string_view path);

// A regular file of `folder`, opened for reading. DataLoss for a link, a pipe or the like.
struct OpenedFile {
  UniqueFd fd;
  int64_t bytes = 0;
};
absl::StatusOr<OpenedFile> OpenRegular(const std::string& folder, const std::string& name);

// A file of `folder` that is one JSON object within the limits of format.h. DataLoss otherwise.
absl::StatusOr<nlohmann::json> ReadJsonObject(const std::string& folder, const std::string& name);
absl::StatusOr<nlohmann::json> ParseJsonObject(absl::string_view text);

// Whether anything, a broken link too, has that name.
bool Exists(const std::string& path);
absl::Status Rename(const std::string& from, const std::string& to);

// Unlinks the manifest first, so that what is left of an interrupted removal is no checkpoint.
absl::Status RemoveFolder(const std::string& path);

}  // namespace muster::checkpoint
