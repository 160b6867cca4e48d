#include "storage/hdfs/file_system.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/file_errors.h"
#include "storage/hdfs/writer.h"
#include "storage/span_sink.h"
#include "storage/temporary_name.h"

namespace muster::storage {
namespace {

constexpr size_t kMaxNameBytes = 8000;                  // HDFS's own limit
constexpr int64_t kMaxListingBytes = int64_t{1} << 28;  // from a server without pages

class HdfsReader final : public Reader {
 public:
  HdfsReader(HdfsClient& client, Url url, HdfsStatus file)
      : client_(client), url_(std::move(url)), file_(std::move(file)) {}

  int64_t size() const override { return file_.bytes; }

  // WebHDFS reads by name. The bytes belong to the opened file if it is still there afterwards.
  absl::StatusOr<size_t> Read(int64_t offset, absl::Span<char> buffer) override {
    if (offset < 0) return NegativeOffset();
    if (offset >= file_.bytes || buffer.empty()) return 0;
    const auto bytes = std::min(buffer.size(), static_cast<size_t>(file_.bytes - offset));
    const net::HttpOptions& http = client_.options().http;
    HdfsBackoff backoff(http, http.retry.tries);
    for (;;) {
      const absl::Status status = Fetch(offset, buffer.first(bytes));
      const auto now = client_.Lookup(url_);
      if (now.ok() && !now->IsSame(file_)) return Replaced(url_);
      if (status.ok()) {
        MUSTER_RETURN_IF_ERROR(now.status());
        return bytes;
      }
      if (!absl::IsUnavailable(status) || !backoff.Wait()) return status;
    }
  }

 private:
  absl::Status Fetch(int64_t offset, absl::Span<char> buffer) {
    SpanSink sink(buffer);
    MUSTER_RETURN_IF_ERROR(client_
                               .Transfer({.url = url_,
                                          .op = "OPEN",
                                          .query = {{"offset", absl::StrCat(offset)},
                                                    {"length", absl::StrCat(buffer.size())}},
                                          .sink = &sink})
                               .status());
    if (sink.filled() == buffer.size()) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(url_.ToString(), ": the datanode sent ",
                                               sink.filled(), " of ", buffer.size(),
                                               " requested bytes"));
  }

  HdfsClient& client_;
  const Url url_;
  const HdfsStatus file_;
};

FileInfo InfoOf(const Url& url, const HdfsStatus& status) {
  return {.url = url, .bytes = status.bytes, .modified = absl::FromUnixMillis(status.modified)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<HdfsFileSystem>> HdfsFileSystem::FromVariables(
    const base::Variables& variables) {
  MUSTER_ASSIGN_OR_RETURN(auto client, HdfsClient::FromVariables(variables));
  return std::make_unique<HdfsFileSystem>(std::move(client));
}

absl::StatusOr<FileInfo> HdfsFileSystem::Stat(const Url& url) {
  if (url.NamesFolder()) return Absent(url);
  MUSTER_ASSIGN_OR_RETURN(const HdfsStatus status, client_->Lookup(url));
  if (status.kind != HdfsStatus::Kind::kFile) return Absent(url);
  return InfoOf(url, status);
}

absl::StatusOr<std::unique_ptr<Reader>> HdfsFileSystem::OpenForReading(const Url& url) {
  if (url.NamesFolder()) return NotAFileName(url);
  MUSTER_ASSIGN_OR_RETURN(HdfsStatus status, client_->Lookup(url));
  if (status.kind != HdfsStatus::Kind::kFile) return NotAFileName(url);
  return std::make_unique<HdfsReader>(*client_, url, std::move(status));
}

absl::StatusOr<std::unique_ptr<Writer>> HdfsFileSystem::OpenForWriting(const Url& url,
                                                                       IfExists if_exists) {
  if (url.NamesFolder()) return NotAFileName(url);
  const auto there = client_->Lookup(url);
  if (!there.ok() && !absl::IsNotFound(there.status())) return there.status();
  if (there.ok() && there->kind != HdfsStatus::Kind::kFile) return NotAFileName(url);
  // Only avoids an upload in vain: the writer's final rename decides.
  if (there.ok() && if_exists == IfExists::kFail) return Exists(url);
  return std::make_unique<HdfsWriter>(*client_, url, if_exists);
}

absl::StatusOr<std::vector<HdfsStatus>> HdfsFileSystem::Entries(const Url& folder) {
  std::vector<HdfsStatus> entries;
  for (std::string after;;) {
    const bool pages = pages_;
    HdfsRequest request{.url = folder, .op = pages ? "LISTSTATUS_BATCH" : "LISTSTATUS"};
    if (!pages) request.max_response_bytes = kMaxListingBytes;
    if (!after.empty()) request.query.emplace_back("startAfter", after);
    MUSTER_ASSIGN_OR_RETURN(const net::Response response, client_->Send(request));
    if (IsAbsence(response)) return std::vector<HdfsStatus>{};
    const absl::Status status = client_->ErrorOf(folder, response);
    if (pages && after.empty() &&
        (absl::IsInvalidArgument(status) || absl::IsUnimplemented(status))) {
      pages_ = false;
      continue;
    }
    MUSTER_RETURN_IF_ERROR(status);
    auto page = ParseHdfsPage(response.body);
    if (!page.ok()) return base::Annotate(page.status(), folder.ToString());
    std::move(page->entries.begin(), page->entries.end(), std::back_inserter(entries));
    if (page->remaining == 0) return entries;
    if (page->entries.empty() || entries.back().name <= after) {
      return absl::DataLossError(absl::StrCat(
          folder.ToString(), ": the server returned the same page of the listing twice"));
    }
    after = entries.back().name;
  }
}

absl::StatusOr<std::vector<FileInfo>> HdfsFileSystem::List(const Url& prefix, Depth depth) {
  std::vector<FileInfo> found;
  std::vector<Url> folders = {prefix.WithName(prefix.name.substr(0, prefix.name.rfind('/') + 1))};
  while (!folders.empty()) {
    const Url folder = std::move(folders.back());
    folders.pop_back();
    MUSTER_ASSIGN_OR_RETURN(const std::vector<HdfsStatus> entries, Entries(folder));
    for (const HdfsStatus& entry : entries) {
      Url url = folder.Child(entry.name);
      // Listing a file returns the file itself, without a name.
      const bool hidden = entry.name.empty() || absl::StartsWith(entry.name, kTemporaryPrefix);
      if (hidden || !absl::StartsWith(url.name, prefix.name)) continue;
      if (url.name.size() > kMaxNameBytes) {
        return absl::DataLossError(
            absl::StrCat(prefix.ToString(), ": the server lists a name that is too long"));
      }
      if (entry.kind == HdfsStatus::Kind::kFile) {
        found.push_back(InfoOf(url, entry));
      } else if (entry.kind == HdfsStatus::Kind::kFolder) {
        url.name.push_back('/');
        if (depth == Depth::kAll) {
          folders.push_back(std::move(url));
        } else {
          found.push_back(InfoOf(url, entry));
        }
      }
    }
  }
  std::sort(found.begin(), found.end(),
            [](const FileInfo& a, const FileInfo& b) { return a.url.name < b.url.name; });
  return found;
}

absl::Status HdfsFileSystem::Delete(const Url& url) {
  const auto there = client_->Lookup(url);
  if (absl::IsNotFound(there.status())) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(there.status());
  const bool folder = there->kind == HdfsStatus::Kind::kFolder;
  if (folder && !url.NamesFolder()) return NotAFileName(url);
  if (!folder && url.NamesFolder()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const net::Response response,
                          client_->Send({.method = "DELETE", .url = url, .op = "DELETE"}));
  return IsAbsence(response) ? absl::OkStatus() : client_->ErrorOf(url, response);
}

absl::Status HdfsFileSystem::Rename(const Url& from, const Url& to) {
  if (from.NamesFolder()) return NotAFileName(from);
  if (to.NamesFolder()) return NotAFileName(to);
  if (from.authority != to.authority) {
    return absl::UnimplementedError(absl::StrCat(to.ToString(), ": is in another cluster than ",
                                                 from.ToString(),
                                                 "; copy it and delete the original"));
  }
  MUSTER_ASSIGN_OR_RETURN(const HdfsStatus file, client_->Lookup(from));
  if (file.kind != HdfsStatus::Kind::kFile) return Absent(from);
  const Url folder = to.WithName(to.name.substr(0, to.name.rfind('/') + 1));
  MUSTER_ASSIGN_OR_RETURN(const net::Response response,
                          client_->Send({.method = "PUT", .url = folder, .op = "MKDIRS"}));
  MUSTER_RETURN_IF_ERROR(client_->ErrorOf(to, response));
  return client_->Rename(from, file, to, IfExists::kReplace);
}

}  // namespace muster::storage
