#include "storage/file_system.h"

#include <fnmatch.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/units.h"

namespace muster::storage {
namespace {

constexpr absl::string_view kWildcards = "*?[\\";

}  // namespace

absl::StatusOr<std::string> ReadWhole(FileSystem& files, const Url& url, int64_t max_bytes) {
  constexpr int kTries = 5;
  for (int tries = 1;; ++tries) {
    MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<Reader> reader, files.OpenForReading(url));
    if (reader->size() > max_bytes) {
      return absl::OutOfRangeError(
          absl::StrCat(url.ToString(), ": is larger than ", base::FormatBytes(max_bytes)));
    }
    std::string content(static_cast<size_t>(reader->size()), '\0');
    const auto read = reader->Read(0, absl::MakeSpan(content));
    if (absl::IsAborted(read.status()) && tries < kTries) continue;
    MUSTER_RETURN_IF_ERROR(read.status());
    content.resize(*read);
    return content;
  }
}

absl::Status WriteWhole(FileSystem& files, const Url& url, absl::string_view content,
                        IfExists if_exists) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<Writer> writer,
                          files.OpenForWriting(url, if_exists));
  MUSTER_RETURN_IF_ERROR(writer->Append(content));
  return writer->Close();
}

bool IsGlob(const Url& url) { return url.name.find_first_of("*?[") != std::string::npos; }

absl::StatusOr<std::vector<FileInfo>> Glob(FileSystem& files, const Url& pattern) {
  // Lists only below the literal part of the pattern.
  const size_t first = std::min(pattern.name.find_first_of(kWildcards.data()), pattern.name.size());
  const bool flat = pattern.name.find('/', first) == std::string::npos;
  MUSTER_ASSIGN_OR_RETURN(std::vector<FileInfo> all,
                          files.List(pattern.WithName(pattern.name.substr(0, first)),
                                     flat ? Depth::kHere : Depth::kAll));
  std::vector<FileInfo> matching;
  for (FileInfo& info : all) {
    const bool matches = ::fnmatch(pattern.name.c_str(), info.url.name.c_str(), FNM_PATHNAME) == 0;
    if (matches && !info.is_folder()) matching.push_back(std::move(info));
  }
  return matching;
}

}  // namespace muster::storage
