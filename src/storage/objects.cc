#include "storage/objects.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace muster::storage {

absl::Status NoBucket(const Url& url) {
  return absl::NotFoundError(absl::StrCat(url.ToString(), ": there is no bucket '", url.authority,
                                          "'; make it with: muster ", "storage mb ", url.scheme,
                                          "://", url.authority));
}

absl::Status DamagedUpload(const Url& url) {
  return absl::DataLossError(
      absl::StrCat(url.ToString(), ": the upload was corrupted in transit; try again"));
}

absl::Status NoRenaming(const Url& url, absl::string_view storage) {
  return absl::UnimplementedError(absl::StrCat(url.ToString(), ": ", storage,
                                               " cannot rename files; copy the file and delete ",
                                               "the original"));
}

absl::StatusOr<int64_t> ParseSize(const Url& url, absl::string_view text) {
  int64_t size = 0;
  if (absl::SimpleAtoi(text, &size) && size >= 0) return size;
  return absl::DataLossError(absl::StrCat(url.ToString(), ": the server reports no size"));
}

absl::StatusOr<std::vector<FileInfo>> ListPages(
    const Url& prefix,
    const std::function<absl::StatusOr<ListingPage>(const std::string& token)>& fetch) {
  std::vector<FileInfo> found;
  std::string token;
  do {
    MUSTER_ASSIGN_OR_RETURN(ListingPage page, fetch(token));
    for (FileInfo& info : page.files) {
      if (!info.is_folder()) found.push_back(std::move(info));
    }
    for (const std::string& folder : page.folders) {
      found.push_back({.url = prefix.WithName(folder)});
    }
    if (!token.empty() && page.next == token) {
      return absl::DataLossError(absl::StrCat(
          prefix.ToString(), ": the server returned the same page of the listing twice"));
    }
    token = std::move(page.next);
  } while (!token.empty());
  std::sort(found.begin(), found.end(),
            [](const FileInfo& a, const FileInfo& b) { return a.url.name < b.url.name; });
  return found;
}

}  // namespace muster::storage
