#include "storage/s3/writer.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/bytes/digest.h"
#include "base/status_macros.h"
#include "storage/objects.h"
#include "storage/xml.h"

namespace muster::storage {
namespace {

// S3 allows 10,000 parts. Doubling the part size every 1,000 parts suffices for its largest object.
constexpr size_t kPartsPerSize = 1000;

std::string Unquoted(absl::string_view etag) {
  absl::ConsumePrefix(&etag, "\"");
  absl::ConsumeSuffix(&etag, "\"");
  return absl::AsciiStrToLower(etag);
}

// The entity tag is the MD5 of the content unless the server encrypts with KMS or customer keys.
absl::Status CheckEtag(const Url& url, const net::Response& response, const std::string& md5) {
  const std::string etag = Unquoted(response.Header("ETag"));
  const bool is_md5 = etag.size() == md5.size() &&
                      !absl::StrContains(response.Header("x-amz-server-side-encryption"), "kms") &&
                      response.Header("x-amz-server-side-encryption-customer-algorithm").empty();
  if (!is_md5 || etag == md5) return absl::OkStatus();
  return DamagedUpload(url);
}

}  // namespace

S3Writer::~S3Writer() { Abort(); }

void S3Writer::Abort() {
  if (upload_.empty()) return;
  client_.Send({.method = "DELETE", .url = url(), .query = {{"uploadId", upload_}}})
      .status()
      .IgnoreError();
  upload_.clear();
}

absl::Status S3Writer::Begin() {
  MUSTER_ASSIGN_OR_RETURN(const net::Response response,
                          client_.Send({.method = "POST",
                                        .url = url(),
                                        .query = {{"uploads", ""}},
                                        .headers = {{"Content-Type", kContentType}}}));
  MUSTER_RETURN_IF_ERROR(S3Client::ErrorOf(url(), response));
  const auto xml = ParseXml(response.body);
  if (!xml.ok()) return base::Annotate(xml.status(), url().ToString());
  upload_ = std::string(xml->Text("UploadId"));
  if (upload_.empty()) {
    return absl::DataLossError(
        absl::StrCat(url().ToString(), ": the server returned no upload id"));
  }
  return absl::OkStatus();
}

absl::Status S3Writer::SendPart(absl::string_view body) {
  if (upload_.empty()) MUSTER_RETURN_IF_ERROR(Begin());
  const std::string number = absl::StrCat(parts_.size() + 1);
  MUSTER_ASSIGN_OR_RETURN(const net::Response response,
                          client_.Send({.method = "PUT",
                                        .url = url(),
                                        .query = {{"partNumber", number}, {"uploadId", upload_}},
                                        .headers = {{"Content-Type", kContentType}},
                                        .body = body}));
  MUSTER_RETURN_IF_ERROR(S3Client::ErrorOf(url(), response));
  Part part{.etag = std::string(response.Header("ETag")), .md5 = base::Md5Hex(body)};
  MUSTER_RETURN_IF_ERROR(CheckEtag(url(), response, part.md5));
  parts_.push_back(std::move(part));
  if (parts_.size() % kPartsPerSize == 0) DoublePartBytes();
  return absl::OkStatus();
}

absl::Status S3Writer::SendLast(absl::string_view part) {
  MUSTER_RETURN_IF_ERROR(SendPart(part));
  return Complete();
}

// S3 defines the tag of a multipart object as the MD5 of its parts' MD5s, then the part count.
std::string S3Writer::ExpectedEtag() const {
  std::string digests;
  for (const Part& part : parts_) digests += absl::HexStringToBytes(part.md5);
  return absl::StrCat(base::Md5Hex(digests), "-", parts_.size());
}

bool S3Writer::MatchesUpload(const std::string& etag) {
  const auto head = client_.Send({.method = "HEAD", .url = url()});
  return head.ok() && head->ok() && Unquoted(head->Header("ETag")) == etag;
}

absl::Status S3Writer::SendWhole(absl::string_view content) {
  S3Request request{
      .method = "PUT", .url = url(), .headers = {{"Content-Type", kContentType}}, .body = content};
  if (if_exists_ == IfExists::kFail) request.headers.emplace_back("If-None-Match", "*");
  MUSTER_ASSIGN_OR_RETURN(const net::Response response, client_.Send(request));
  const std::string md5 = base::Md5Hex(content);
  if (response.status == 412 && MatchesUpload(md5)) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(S3Client::ErrorOf(url(), response));
  return CheckEtag(url(), response, md5);
}

absl::Status S3Writer::Complete() {
  std::string body = "<CompleteMultipartUpload>";
  for (size_t i = 0; i < parts_.size(); ++i) {
    absl::StrAppend(&body, "<Part><PartNumber>", i + 1, "</PartNumber><ETag>",
                    XmlEscape(parts_[i].etag), "</ETag></Part>");
  }
  absl::StrAppend(&body, "</CompleteMultipartUpload>");
  S3Request request{.method = "POST",
                    .url = url(),
                    .query = {{"uploadId", upload_}},
                    .headers = {{"Content-Type", "application/xml"}},
                    .body = body};
  if (if_exists_ == IfExists::kFail) request.headers.emplace_back("If-None-Match", "*");
  MUSTER_ASSIGN_OR_RETURN(net::Response response, client_.Send(request));
  // 404: the upload was completed by an attempt whose response was lost. 412: an object exists,
  // which may be the one of such an attempt.
  const bool refused = response.status == 404 || response.status == 412;
  if (refused && MatchesUpload(ExpectedEtag())) {
    upload_.clear();
    return absl::OkStatus();
  }
  // S3 sends status 200 before it has completed the upload, so the body may still be an error.
  const auto xml = ParseXml(response.body);
  if (response.ok() && xml.ok() && xml->name == "Error") response.status = 500;
  MUSTER_RETURN_IF_ERROR(S3Client::ErrorOf(url(), response));
  upload_.clear();
  return absl::OkStatus();
}

}  // namespace muster::storage
