// Code that the object storages (buckets behind HTTP) share.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/file_errors.h"
#include "storage/file_system.h"

namespace muster::storage {

inline constexpr char kContentType[] = "application/octet-stream";

absl::Status NoBucket(const Url& url);
// The server's checksum or size differs from what was sent.
absl::Status DamagedUpload(const Url& url);
absl::Status NoRenaming(const Url& url, absl::string_view storage);

// Returns DataLoss if `text` is not a size.
absl::StatusOr<int64_t> ParseSize(const Url& url, absl::string_view text);

struct ListingPage {
  std::vector<FileInfo> files;
  std::vector<std::string> folders;  // names, with the slash
  std::string next;                  // token of the next page; "" on the last one
};

// Fetches all pages and returns them as FileSystem::List() does, without the placeholder objects
// that some tools create for folders. Calls `fetch` with "" for the first page. Returns DataLoss
// if the server repeats a page token.
absl::StatusOr<std::vector<FileInfo>> ListPages(
    const Url& prefix,
    const std::function<absl::StatusOr<ListingPage>(const std::string& token)>& fetch);

}  // namespace muster::storage
