// What the storages that keep objects in buckets, behind HTTP, have in common.
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
// What was sent and what the server has are not the same.
absl::Status DamagedUpload(const Url& url);
absl::Status NoRenaming(const Url& url, absl::string_view storage);

// DataLoss when the server tells no size.
absl::StatusOr<int64_t> ParseSize(const Url& url, absl::string_view text);

struct ListingPage {
  std::vector<FileInfo> files;
  std::vector<std::string> folders;  // their names, with the slash
  std::string next;                  // what names the next page; "": this was the last
};

// All pages as List() returns them: in order, and without what some tools create to stand for a
// folder. `fetch` is first called with "". DataLoss when it comes to no end.
absl::StatusOr<std::vector<FileInfo>> ListPages(
    const Url& prefix,
    const std::function<absl::StatusOr<ListingPage>(const std::string& token)>& fetch);

}  // namespace muster::storage
