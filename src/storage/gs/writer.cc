// The protocol of a resumable upload:
//
//    POST …?uploadType=resumable          ->  200, Location: the session
//    PUT  session, bytes a-b/*            ->  308, Range: bytes=0-b     as often as needed
//    PUT  session, bytes c-d/TOTAL        ->  200, the object           it is visible now
//
//    after a lost response:
//    PUT  session, bytes */TOTAL or */*   ->  308 with the bytes that arrived; 200: complete
//
// The server may accept fewer bytes than were sent, so Transfer() continues at the Range that it
// reports.
#include "storage/gs/writer.h"

#include <random>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/bytes/crc32c.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "storage/gs/object.h"
#include "storage/objects.h"

namespace muster::storage {
namespace {

using To = GsRequest::To;

constexpr int kResumeIncomplete = 308;

std::string RandomWord() {
  std::random_device random;
  std::string word;
  for (int i = 0; i < 4; ++i) absl::StrAppend(&word, absl::Hex(random(), absl::kZeroPad8));
  return word;
}

// Returns a Content-Range header for `size` bytes at `begin`; `total` is -1 if not known yet.
std::string ContentRange(int64_t begin, int64_t size, int64_t total) {
  const std::string range = size == 0 ? "*" : absl::StrCat(begin, "-", begin + size - 1);
  return absl::StrCat("bytes ", range, "/", total < 0 ? "*" : absl::StrCat(total));
}

// Returns whether it is unknown how much of the request body the server received.
bool IsLost(const absl::StatusOr<net::Response>& response) {
  return response.ok() ? net::IsRetryableStatus(response->status)
                       : absl::IsUnavailable(response.status());
}

}  // namespace

GsWriter::~GsWriter() { Abort(); }

void GsWriter::Abort() {
  if (session_.empty()) return;
  client_
      .Send({.method = "DELETE",
             .to = To::kSession,
             .url = url(),
             .headers = {{"Content-Length", "0"}},
             .session = session_})
      .status()
      .IgnoreError();
  session_.clear();
}

absl::Status GsWriter::Begin() {
  GsRequest request{.method = "POST",
                    .to = To::kUpload,
                    .url = url(),
                    .query = {{"uploadType", "resumable"}, {"fields", kObjectFields}},
                    .headers = {{"X-Upload-Content-Type", kContentType}}};
  if (if_exists_ == IfExists::kFail) request.query.emplace_back("ifGenerationMatch", "0");
  MUSTER_ASSIGN_OR_RETURN(const net::Response response, client_.Send(request));
  MUSTER_RETURN_IF_ERROR(GsClient::ErrorOf(request, response));
  const absl::string_view session = response.Header("Location");
  // The address authorizes the upload, so it must not leave an encrypted connection.
  const bool safe = !absl::StartsWith(client_.options().endpoint, "https://") ||
                    absl::StartsWith(session, "https://");
  if (session.empty() || !safe) {
    return absl::DataLossError(
        absl::StrCat(url().ToString(), ": the server returned no upload address"));
  }
  session_ = std::string(session);
  return absl::OkStatus();
}

absl::StatusOr<net::Response> GsWriter::Put(absl::string_view bytes, const std::string& range,
                                            bool idempotent) {
  GsRequest request{.method = "PUT",
                    .to = To::kSession,
                    .url = url(),
                    .headers = {{"Content-Range", range}, {"Content-Type", kContentType}},
                    .body = bytes,
                    .session = session_,
                    .idempotent = idempotent};
  if (!absl::EndsWith(range, "/*")) {
    request.headers.emplace_back("X-Goog-Hash", absl::StrCat("crc32c=", FormatCrc32c(crc_)));
  }
  return client_.Send(request);
}

absl::StatusOr<int64_t> GsWriter::Received(const net::Response& response, int64_t from,
                                           int64_t to) const {
  if (response.status == 404 || response.status == 410) {
    return absl::UnavailableError(
        absl::StrCat(url().ToString(), ": the upload has expired on the server; start again"));
  }
  if (response.ok()) {
    return absl::DataLossError(
        absl::StrCat(url().ToString(), ": the server completed the upload too early; start again"));
  }
  if (response.status != kResumeIncomplete) {
    return GsClient::ErrorOf({.to = To::kSession, .url = url()}, response);
  }
  absl::string_view range = response.Header("Range");
  int64_t last = -1;
  const bool understood = range.empty() || (absl::ConsumePrefix(&range, "bytes=0-") &&
                                            absl::SimpleAtoi(range, &last) && last >= 0);
  if (!understood || last >= to || last + 1 < from) {
    return absl::DataLossError(
        absl::StrCat(url().ToString(), ": the server lost parts of the upload; start again"));
  }
  return last + 1;
}

absl::Status GsWriter::Transfer(absl::string_view part, bool last) {
  const int64_t end = sent_ + static_cast<int64_t>(part.size());
  const int64_t total = last ? end : -1;
  // `idle` counts attempts in a row that made no progress; any accepted byte resets it.
  for (int idle = 0; last || sent_ < end;) {
    part.remove_prefix(part.size() - static_cast<size_t>(end - sent_));
    auto response = Put(part, ContentRange(sent_, end - sent_, total), /*idempotent=*/false);
    const bool lost = IsLost(response);
    if (lost) {
      const net::Response answer = response.ok() ? *response : net::Response{};
      if (!client_.WaitBeforeRetry(++idle, answer)) {
        MUSTER_RETURN_IF_ERROR(response.status());
        return GsClient::ErrorOf({.to = To::kSession, .url = url()}, answer);
      }
      // An empty PUT queries how many bytes the server has.
      response = Put("", ContentRange(0, 0, total), /*idempotent=*/true);
    }
    MUSTER_RETURN_IF_ERROR(response.status());
    if (response->ok() && last) return Verify(*response, end);
    MUSTER_ASSIGN_OR_RETURN(const int64_t received, Received(*response, sent_, end));
    if (received > sent_) {
      idle = 0;
    } else if (!lost && !client_.WaitBeforeRetry(++idle, *response)) {
      return absl::UnavailableError(
          absl::StrCat(url().ToString(), ": the server accepts no more bytes; try again later"));
    }
    sent_ = received;
  }
  return absl::OkStatus();
}

absl::Status GsWriter::Verify(const net::Response& response, int64_t bytes) {
  session_.clear();
  MUSTER_ASSIGN_OR_RETURN(const GsObject object,
                          ParseObject(url(), base::ParseJson(response.body)));
  if (object.info.bytes == bytes && object.crc32c.value_or(crc_) == crc_) return absl::OkStatus();
  client_
      .Send({.method = "DELETE", .url = url(), .query = {{"ifGenerationMatch", object.generation}}})
      .status()
      .IgnoreError();
  return DamagedUpload(url());
}

absl::Status GsWriter::SendPart(absl::string_view part) {
  if (session_.empty()) MUSTER_RETURN_IF_ERROR(Begin());
  crc_ = base::ExtendCrc32c(crc_, part);
  return Transfer(part, /*last=*/false);
}

absl::Status GsWriter::SendLast(absl::string_view part) {
  crc_ = base::ExtendCrc32c(crc_, part);
  return Transfer(part, /*last=*/true);
}

absl::Status GsWriter::SendWhole(absl::string_view content) {
  if (if_exists_ == IfExists::kFail) {
    MUSTER_RETURN_IF_ERROR(Begin());
    return SendLast(content);
  }
  crc_ = base::Crc32c(content);
  const std::string boundary = RandomWord();
  const std::string body = absl::StrCat(
      "--", boundary, "\r\nContent-Type: application/json\r\n\r\n{\"contentType\":\"", kContentType,
      "\",\"crc32c\":\"", FormatCrc32c(crc_), "\"}\r\n--", boundary,
      "\r\nContent-Type: ", kContentType, "\r\n\r\n", content, "\r\n--", boundary, "--\r\n");
  const GsRequest request{
      .method = "POST",
      .to = To::kUpload,
      .url = url(),
      .query = {{"uploadType", "multipart"}, {"fields", kObjectFields}},
      .headers = {{"Content-Type", absl::StrCat("multipart/related; boundary=", boundary)}},
      .body = body};
  MUSTER_ASSIGN_OR_RETURN(const net::Response response, client_.Send(request));
  MUSTER_RETURN_IF_ERROR(GsClient::ErrorOf(request, response));
  return Verify(response, static_cast<int64_t>(content.size()));
}

}  // namespace muster::storage
