#include "storage/s3/file_system.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "storage/file_errors.h"
#include "storage/s3/writer.h"
#include "storage/s3/xml.h"
#include "storage/span_sink.h"

namespace muster::storage {
namespace {

class S3Reader final : public Reader {
 public:
  S3Reader(S3Client& client, Url url, int64_t size, std::string etag)
      : client_(client), url_(std::move(url)), size_(size), etag_(std::move(etag)) {}

  int64_t size() const override { return size_; }

  absl::StatusOr<size_t> Read(int64_t offset, absl::Span<char> buffer) override {
    if (offset < 0) return NegativeOffset();
    if (offset >= size_ || buffer.empty()) return 0;
    const auto bytes = std::min<int64_t>(static_cast<int64_t>(buffer.size()), size_ - offset);
    SpanSink sink(buffer.first(static_cast<size_t>(bytes)));
    const auto response = client_.Send(
        {.url = url_,
         .headers = {{"Range", absl::StrCat("bytes=", offset, "-", offset + bytes - 1)}},
         .sink = &sink});
    MUSTER_RETURN_IF_ERROR(response.status());
    MUSTER_RETURN_IF_ERROR(S3Client::ErrorOf(url_, *response));
    if (response->Header("ETag") != etag_) {
      return absl::AbortedError(
          absl::StrCat(url_.ToString(), ": was replaced while it was read; begin again"));
    }
    const bool whole = bytes == size_ && response->status == 200;
    if ((response->status != 206 && !whole) || sink.filled() != static_cast<size_t>(bytes)) {
      return absl::DataLossError(
          absl::StrCat(url_.ToString(), ": the server sends another range than it was asked for"));
    }
    return sink.filled();
  }

 private:
  S3Client& client_;
  const Url url_;
  const int64_t size_;
  const std::string etag_;
};

bool IsMd5(absl::string_view text) {
  return text.size() == 32 && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isxdigit(static_cast<unsigned char>(c));
         });
}

// As the server writes it with encoding-type=url: a plus is a space.
std::string Decoded(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '%' && i + 2 < text.size() &&
                        absl::ascii_isxdigit(static_cast<unsigned char>(text[i + 1])) &&
                        absl::ascii_isxdigit(static_cast<unsigned char>(text[i + 2]));
    if (escape) {
      const auto digit = [](char c) {
        return absl::ascii_isdigit(static_cast<unsigned char>(c))
                   ? c - '0'
                   : absl::ascii_tolower(static_cast<unsigned char>(c)) - 'a' + 10;
      };
      decoded.push_back(static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2])));
      i += 2;
    } else {
      decoded.push_back(text[i] == '+' ? ' ' : text[i]);
    }
  }
  return decoded;
}

// One page of a listing.
absl::Status AddPage(const Url& prefix, const XmlElement& page, std::vector<FileInfo>& found) {
  const bool encoded = page.Text("EncodingType") == "url";
  const auto name = [encoded](absl::string_view text) {
    return encoded ? Decoded(text) : std::string(text);
  };
  for (const XmlElement& element : page.children) {
    if (element.name == "CommonPrefixes") {
      found.push_back({.url = prefix.WithName(name(element.Text("Prefix")))});
    } else if (element.name == "Contents") {
      FileInfo info{.url = prefix.WithName(name(element.Text("Key")))};
      std::string error;
      if (!absl::SimpleAtoi(element.Text("Size"), &info.bytes) || info.bytes < 0) {
        return absl::DataLossError(
            absl::StrCat(prefix.ToString(), ": the server's listing has an entry without a size"));
      }
      if (!absl::ParseTime(absl::RFC3339_full, element.Text("LastModified"), &info.modified,
                           &error)) {
        info.modified = absl::InfinitePast();
      }
      // What some tools create to stand for a folder.
      if (!info.is_folder()) found.push_back(std::move(info));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<S3FileSystem>> S3FileSystem::FromVariables(
    const Variables& variables) {
  MUSTER_ASSIGN_OR_RETURN(S3Options options, S3Options::FromVariables(variables));
  MUSTER_ASSIGN_OR_RETURN(auto http, net::HttpClient::Create(options.http));
  return std::make_unique<S3FileSystem>(std::make_unique<S3Client>(
      std::move(options), std::move(http), std::make_unique<AwsCredentialChain>(variables)));
}

absl::StatusOr<net::Response> S3FileSystem::Head(const Url& url) {
  if (url.name.empty()) return NotAFileName(url);
  MUSTER_ASSIGN_OR_RETURN(net::Response response, client_->Send({.method = "HEAD", .url = url}));
  if (!response.ok()) return client_->Explain(url, response);
  return response;
}

absl::StatusOr<FileInfo> S3FileSystem::Stat(const Url& url) {
  if (url.name.empty() || url.name.back() == '/') return Absent(url);
  MUSTER_ASSIGN_OR_RETURN(const net::Response response, Head(url));
  FileInfo info{.url = url};
  if (!absl::SimpleAtoi(response.Header("Content-Length"), &info.bytes) || info.bytes < 0) {
    return absl::DataLossError(absl::StrCat(url.ToString(), ": the server does not tell its size"));
  }
  info.modified =
      net::ParseHttpDate(response.Header("Last-Modified")).value_or(absl::InfinitePast());
  absl::string_view etag = response.Header("ETag");
  absl::ConsumePrefix(&etag, "\"");
  absl::ConsumeSuffix(&etag, "\"");
  const bool own_keys = absl::StrContains(response.Header("x-amz-server-side-encryption"), "kms") ||
                        !response.Header("x-amz-server-side-encryption-customer-algorithm").empty();
  if (IsMd5(etag) && !own_keys) info.md5 = absl::AsciiStrToLower(etag);
  return info;
}

absl::StatusOr<std::unique_ptr<Reader>> S3FileSystem::OpenForReading(const Url& url) {
  MUSTER_ASSIGN_OR_RETURN(const net::Response response, Head(url));
  int64_t size = 0;
  if (!absl::SimpleAtoi(response.Header("Content-Length"), &size) || size < 0) {
    return absl::DataLossError(absl::StrCat(url.ToString(), ": the server does not tell its size"));
  }
  return std::make_unique<S3Reader>(*client_, url, size, std::string(response.Header("ETag")));
}

absl::StatusOr<std::unique_ptr<Writer>> S3FileSystem::OpenForWriting(const Url& url,
                                                                     IfExists if_exists) {
  if (url.name.empty() || url.name.back() == '/') return NotAFileName(url);
  if (if_exists == IfExists::kFail) {
    const absl::Status status = Stat(url).status();
    if (status.ok()) return Exists(url);
    if (!absl::IsNotFound(status)) return status;
  }
  return std::make_unique<S3Writer>(*client_, url, if_exists);
}

absl::StatusOr<std::vector<FileInfo>> S3FileSystem::List(const Url& prefix, Depth depth) {
  std::vector<FileInfo> found;
  S3Request request{
      .url = prefix.WithName(""),
      .query = {{"encoding-type", "url"}, {"list-type", "2"}, {"prefix", prefix.name}}};
  if (depth == Depth::kHere) request.query.emplace_back("delimiter", "/");
  const size_t first_page = request.query.size();
  for (std::string token;;) {
    MUSTER_ASSIGN_OR_RETURN(const net::Response response, client_->Send(request));
    MUSTER_RETURN_IF_ERROR(S3Client::ErrorOf(prefix, response));
    const auto page = ParseXml(response.body);
    if (!page.ok()) return Annotate(page.status(), prefix.ToString());
    MUSTER_RETURN_IF_ERROR(AddPage(prefix, *page, found));
    const absl::string_view next = page->Text("NextContinuationToken");
    if (page->Text("IsTruncated") != "true") break;
    if (next.empty() || next == token) {
      return absl::DataLossError(
          absl::StrCat(prefix.ToString(), ": the server's listing does not come to its end"));
    }
    token = std::string(next);
    request.query.resize(first_page);
    request.query.emplace_back("continuation-token", token);
  }
  std::sort(found.begin(), found.end(),
            [](const FileInfo& a, const FileInfo& b) { return a.url.name < b.url.name; });
  return found;
}

absl::Status S3FileSystem::Delete(const Url& url) {
  if (url.name.empty()) return NotAFileName(url);
  MUSTER_ASSIGN_OR_RETURN(const net::Response response,
                          client_->Send({.method = "DELETE", .url = url}));
  const absl::Status status = S3Client::ErrorOf(url, response);
  const bool no_bucket = absl::StrContains(response.body, "NoSuchBucket");
  return absl::IsNotFound(status) && !no_bucket ? absl::OkStatus() : status;
}

absl::Status S3FileSystem::Rename(const Url& from, const Url& /*to*/) {
  return absl::UnimplementedError(absl::StrCat(
      from.ToString(), ": S3 has no renaming at once; copy the file and delete the first"));
}

}  // namespace muster::storage
