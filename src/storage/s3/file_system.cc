#include "storage/s3/file_system.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "storage/file_errors.h"
#include "storage/object_reader.h"
#include "storage/objects.h"
#include "storage/s3/writer.h"
#include "storage/xml.h"

namespace muster::storage {
namespace {

class S3Reader final : public ObjectReader {
 public:
  S3Reader(S3Client& client, const Url& url, int64_t size, std::string etag)
      : ObjectReader(url, size), client_(client), etag_(std::move(etag)) {}

 private:
  absl::StatusOr<net::Response> Get(const std::string& range, net::BodySink& sink) override {
    MUSTER_ASSIGN_OR_RETURN(
        net::Response response,
        client_.Send({.url = url(), .headers = {{"Range", range}}, .sink = &sink}));
    MUSTER_RETURN_IF_ERROR(S3Client::ErrorOf(url(), response));
    if (response.Header("ETag") != etag_) return Replaced(url());
    return response;
  }

  S3Client& client_;
  const std::string etag_;
};

bool IsMd5(absl::string_view text) {
  return text.size() == 32 && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isxdigit(static_cast<unsigned char>(c));
         });
}

// Decodes a name of a listing with encoding-type=url, where a plus is a space.
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

absl::StatusOr<ListingPage> ParsePage(const Url& prefix, absl::string_view text) {
  const auto xml = ParseXml(text);
  if (!xml.ok()) return base::Annotate(xml.status(), prefix.ToString());
  const bool encoded = xml->Text("EncodingType") == "url";
  const auto name = [encoded](absl::string_view text) {
    return encoded ? Decoded(text) : std::string(text);
  };
  ListingPage page;
  for (const XmlElement& element : xml->children) {
    if (element.name == "CommonPrefixes") {
      page.folders.push_back(name(element.Text("Prefix")));
    } else if (element.name == "Contents") {
      FileInfo info{.url = prefix.WithName(name(element.Text("Key")))};
      MUSTER_ASSIGN_OR_RETURN(info.bytes, ParseSize(info.url, element.Text("Size")));
      std::string error;
      if (!absl::ParseTime(absl::RFC3339_full, element.Text("LastModified"), &info.modified,
                           &error)) {
        info.modified = absl::InfinitePast();
      }
      page.files.push_back(std::move(info));
    }
  }
  if (xml->Text("IsTruncated") != "true") return page;
  page.next = std::string(xml->Text("NextContinuationToken"));
  if (page.next.empty()) {
    return absl::DataLossError(
        absl::StrCat(prefix.ToString(), ": the server's listing is truncated without a next page"));
  }
  return page;
}

}  // namespace

absl::StatusOr<std::unique_ptr<S3FileSystem>> S3FileSystem::FromVariables(
    const base::Variables& variables) {
  MUSTER_ASSIGN_OR_RETURN(auto client, S3Client::FromVariables(variables));
  return std::make_unique<S3FileSystem>(std::move(client));
}

absl::StatusOr<net::Response> S3FileSystem::Head(const Url& url) {
  if (url.name.empty()) return NotAFileName(url);
  MUSTER_ASSIGN_OR_RETURN(net::Response response, client_->Send({.method = "HEAD", .url = url}));
  if (!response.ok()) return client_->Explain(url, response);
  return response;
}

absl::StatusOr<FileInfo> S3FileSystem::Stat(const Url& url) {
  if (url.NamesFolder()) return Absent(url);
  MUSTER_ASSIGN_OR_RETURN(const net::Response response, Head(url));
  FileInfo info{.url = url};
  MUSTER_ASSIGN_OR_RETURN(info.bytes, ParseSize(url, response.Header("Content-Length")));
  info.modified =
      net::ParseHttpDate(response.Header("Last-Modified")).value_or(absl::InfinitePast());
  absl::string_view etag = response.Header("ETag");
  absl::ConsumePrefix(&etag, "\"");
  absl::ConsumeSuffix(&etag, "\"");
  // The entity tag of an object encrypted with such keys is not its MD5.
  const bool own_keys = absl::StrContains(response.Header("x-amz-server-side-encryption"), "kms") ||
                        !response.Header("x-amz-server-side-encryption-customer-algorithm").empty();
  if (IsMd5(etag) && !own_keys) info.md5 = absl::AsciiStrToLower(etag);
  return info;
}

absl::StatusOr<std::unique_ptr<Reader>> S3FileSystem::OpenForReading(const Url& url) {
  MUSTER_ASSIGN_OR_RETURN(const net::Response response, Head(url));
  MUSTER_ASSIGN_OR_RETURN(const int64_t size, ParseSize(url, response.Header("Content-Length")));
  return std::make_unique<S3Reader>(*client_, url, size, std::string(response.Header("ETag")));
}

absl::StatusOr<std::unique_ptr<Writer>> S3FileSystem::OpenForWriting(const Url& url,
                                                                     IfExists if_exists) {
  if (url.NamesFolder()) return NotAFileName(url);
  // Only avoids an upload in vain: the writer's If-None-Match decides.
  if (if_exists == IfExists::kFail) {
    const absl::Status status = Stat(url).status();
    if (status.ok()) return Exists(url);
    if (!absl::IsNotFound(status)) return status;
  }
  return std::make_unique<S3Writer>(*client_, url, if_exists);
}

absl::StatusOr<std::vector<FileInfo>> S3FileSystem::List(const Url& prefix, Depth depth) {
  return ListPages(prefix, [&](const std::string& token) -> absl::StatusOr<ListingPage> {
    S3Request request{
        .url = prefix.WithName(""),
        .query = {{"encoding-type", "url"}, {"list-type", "2"}, {"prefix", prefix.name}}};
    if (depth == Depth::kHere) request.query.emplace_back("delimiter", "/");
    if (!token.empty()) request.query.emplace_back("continuation-token", token);
    MUSTER_ASSIGN_OR_RETURN(const net::Response response, client_->Send(request));
    MUSTER_RETURN_IF_ERROR(S3Client::ErrorOf(prefix, response));
    return ParsePage(prefix, response.body);
  });
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
  return NoRenaming(from, "S3");
}

}  // namespace muster::storage
