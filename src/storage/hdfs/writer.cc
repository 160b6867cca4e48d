#include "storage/hdfs/writer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "storage/file_errors.h"
#include "storage/temporary_name.h"

namespace muster::storage {
namespace {

// HDFS releases a file that a dead datanode was writing after a minute.
constexpr int kTries = 12;

Url TemporaryFor(const Url& url) {
  return url.WithName(absl::StrCat(url.name.substr(0, url.name.rfind('/') + 1), TemporaryName()));
}

}  // namespace

HdfsWriter::HdfsWriter(HdfsClient& client, Url url, IfExists if_exists)
    : client_(client),
      url_(std::move(url)),
      temporary_(TemporaryFor(url_)),
      if_exists_(if_exists),
      chunk_bytes_(static_cast<size_t>(client.options().chunk_bytes)) {}

HdfsWriter::~HdfsWriter() { Remove(); }

void HdfsWriter::Remove() {
  if (!created_) return;
  client_.Send({.method = "DELETE", .url = temporary_, .op = "DELETE"}).status().IgnoreError();
  created_ = false;
}

absl::Status HdfsWriter::Append(absl::string_view bytes) {
  while (status_.ok() && !bytes.empty()) {
    const size_t n = std::min(bytes.size(), chunk_bytes_ - buffer_.size());
    buffer_.append(bytes.data(), n);
    bytes.remove_prefix(n);
    if (buffer_.size() < chunk_bytes_) break;
    status_ = SendChunk();
    if (!status_.ok()) Remove();
  }
  return status_;
}

absl::Status HdfsWriter::TryChunk() {
  HdfsRequest request{.method = "PUT",
                      .url = temporary_,
                      .op = "CREATE",
                      .query = {{"overwrite", "true"}},
                      .body = buffer_};
  if (sent_ > 0) {
    request.method = "POST";
    request.op = "APPEND";
    request.query.clear();
  }
  created_ = true;
  return client_.Transfer(request).status();
}

absl::Status HdfsWriter::Truncate() {
  if (sent_ == 0) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const net::Response response,
                          client_.Send({.method = "POST",
                                        .url = temporary_,
                                        .op = "TRUNCATE",
                                        .query = {{"newlength", absl::StrCat(sent_)}}}));
  // {"boolean": false} means that truncation is in progress; until it is done, appending fails.
  return client_.ErrorOf(temporary_, response);
}

absl::Status HdfsWriter::NameTarget(const absl::Status& status) const {
  return absl::Status(
      status.code(),
      absl::StrReplaceAll(status.message(), {{temporary_.ToString(), url_.ToString()}}));
}

absl::Status HdfsWriter::SendChunk() {
  HdfsBackoff backoff(client_.options().http, kTries);
  absl::Status status = TryChunk();
  while (absl::IsUnavailable(status) && backoff.Wait()) {
    const absl::Status cut = Truncate();
    if (!cut.ok() && !absl::IsUnavailable(cut)) break;
    status = cut.ok() ? TryChunk() : cut;
  }
  if (absl::IsAlreadyExists(status)) {
    // The existing file is a parent, not the temporary file, which CREATE overwrites.
    return absl::FailedPreconditionError(
        absl::StrCat(url_.ToString(), ": a parent is a file, not a folder"));
  }
  MUSTER_RETURN_IF_ERROR(NameTarget(status));
  sent_ += static_cast<int64_t>(buffer_.size());
  buffer_.clear();
  return absl::OkStatus();
}

absl::StatusOr<HdfsStatus> HdfsWriter::AwaitLength() {
  HdfsBackoff backoff(client_.options().http, kTries);
  for (;;) {
    auto file = client_.Lookup(temporary_);
    if (!file.ok()) return NameTarget(file.status());
    if (file->bytes == sent_) return file;
    if (file->bytes > sent_ || !backoff.Wait()) {
      return absl::DataLossError(absl::StrCat(url_.ToString(), ": the server has ", file->bytes,
                                              " of ", sent_, " bytes sent; try again"));
    }
  }
}

absl::Status HdfsWriter::Commit() {
  if (!buffer_.empty() || sent_ == 0) MUSTER_RETURN_IF_ERROR(SendChunk());
  MUSTER_ASSIGN_OR_RETURN(const HdfsStatus file, AwaitLength());
  return client_.Rename(temporary_, file, url_, if_exists_);
}

absl::Status HdfsWriter::Close() {
  if (!status_.ok()) return status_;
  const absl::Status status = Commit();
  if (status.ok()) {
    created_ = false;
  } else {
    Remove();
  }
  buffer_ = {};
  status_ = status.ok() ? AlreadyClosed(url_) : status;
  return status;
}

}  // namespace muster::storage
