#include "cli/data/files.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/bytes/digest.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "data/idx/gunzip.h"

namespace muster::cli {
namespace {

// Other tasks and users read the files, too.
constexpr int kFileMode = 0644;
constexpr int kDirectoryMode = 0755;

absl::Status CheckContent(const PublishedFile& file, absl::string_view content) {
  const std::string sum = base::Sha256Hex(content);
  if (sum == file.sha256) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the content is not the published one: ", content.size(),
                                          " bytes with SHA-256 ", sum, ", expected ", file.bytes,
                                          " bytes with ", file.sha256));
}

// An uncompressed file takes precedence, as it does for readers.
bool IsIntact(const PublishedFile& file, const std::string& directory) {
  const std::string path = base::JoinPath(directory, file.name);
  if (IsRegular(path)) {
    const auto content = base::ReadFile(path, file.bytes);
    return content.ok() && CheckContent(file, *content).ok();
  }
  const std::string compressed = path + ".gz";
  if (!IsRegular(compressed)) return false;
  const auto bytes = base::ReadFile(compressed, file.bytes);
  if (!bytes.ok()) return false;
  const auto content = data::GunzipAll(*bytes, file.bytes);
  return content.ok() && CheckContent(file, *content).ok();
}

std::vector<PublishedFile> Missing(const std::vector<PublishedFile>& files,
                                   const std::string& directory) {
  std::vector<PublishedFile> missing;
  for (const PublishedFile& file : files) {
    if (!IsIntact(file, directory)) missing.push_back(file);
  }
  return missing;
}

absl::StatusOr<std::string> GetVerified(DataSource& source, const PublishedFile& file) {
  MUSTER_ASSIGN_OR_RETURN(std::string content, source.Get(file.name, file.bytes));
  MUSTER_RETURN_IF_ERROR(CheckContent(file, content));
  return content;
}

}  // namespace

bool IsRegular(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

bool AllAreIntact(const std::vector<PublishedFile>& files, const std::string& directory) {
  return Missing(files, directory).empty();
}

absl::StatusOr<FetchResult> FetchFiles(const std::vector<PublishedFile>& files,
                                       const std::string& directory, const DataSources& sources) {
  FetchResult result;
  std::vector<PublishedFile> missing = Missing(files, directory);
  for (const auto& source : sources) {
    while (!missing.empty()) {
      const PublishedFile& file = missing.front();
      const auto content = GetVerified(*source, file);
      if (absl::IsCancelled(content.status())) return content.status();
      if (!content.ok()) {
        result.failures.push_back(
            absl::StrCat(source->name(), ": ", file.name, ": ", content.status().message()));
        break;
      }
      // A local error: another source would not help. The folder is created only now, so that a
      // failed download leaves none.
      MUSTER_RETURN_IF_ERROR(base::MakeDirectories(directory, kDirectoryMode));
      MUSTER_RETURN_IF_ERROR(
          base::WriteFileAtomically(base::JoinPath(directory, file.name), *content, kFileMode));
      result.fetched.push_back(file.name);
      result.source = source->name();
      missing.erase(missing.begin());
    }
  }
  if (missing.empty()) return result;
  return absl::UnavailableError(absl::StrJoin(result.failures, "\n"));
}

}  // namespace muster::cli
