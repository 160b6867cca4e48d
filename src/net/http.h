// What is sent and received over HTTP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace muster::net {

using Headers = std::vector<std::pair<std::string, std::string>>;

// The body of a request that is not kept in memory.
class BodySource {
 public:
  virtual ~BodySource() = default;
  virtual int64_t size() const = 0;  // -1: not known; it is sent in chunks
  // The next bytes; 0 is the end.
  virtual absl::StatusOr<size_t> Read(absl::Span<char> buffer) = 0;
  // Begins again, for a repetition. An error is what the request then fails with.
  virtual absl::Status Rewind() = 0;
};

// Takes the body of a successful (2xx) answer as it comes.
class BodySink {
 public:
  virtual ~BodySink() = default;
  // An error ends the transfer, and is what the request fails with.
  virtual absl::Status Write(absl::string_view bytes) = 0;
  // The transfer was lost and begins again.
  virtual absl::Status Rewind() = 0;
};

// Signs a request for Amazon's services and what imitates them (AWS Signature Version 4). The
// caller gives a header x-amz-content-sha256, a URL whose query is sorted, and percent-encodes all
// but unreserved characters in it.
struct AwsSignature {
  std::string region;
  std::string service;
  std::string access_key;
  std::string secret_key;
};

// Whom to trust, and who we are, over TLS: PEM.
struct Tls {
  std::string authorities;  // the only ones trusted; "": those of the client's options
  std::string certificate;  // of ours, with those that lead to its authority; "": none
  std::string key;          // of ours, without a pass phrase
  std::string server_name;  // which the server's certificate must be for; "": the URL's host

  bool operator==(const Tls&) const = default;
};

// What it points to must live until the answer is there.
struct Request {
  std::string method = "GET";
  std::string url;
  Headers headers;
  absl::string_view body;
  BodySource* source = nullptr;  // instead of `body`
  BodySink* sink = nullptr;      // instead of Response::body
  // A larger body for which there is no sink is OutOfRange.
  int64_t max_response_bytes = 16 << 20;
  int max_redirects = 0;  // from https never to http
  // May be sent again when it is not known whether it was carried out.
  bool repeatable = true;
  // Else: may be sent again when it is known that it was not carried out: there was no connection,
  // or the answer is 429, or 503 with a Retry-After.
  bool repeat_when_refused = false;
  absl::Duration timeout = absl::InfiniteDuration();   // of one try
  absl::Duration patience = absl::InfiniteDuration();  // of all tries, if less than the policy's
  // Silence that is not too long, for an answer that comes as things happen; else the options'.
  std::optional<absl::Duration> idle_timeout;
  const Tls* tls = nullptr;
  std::optional<AwsSignature> signature;
  // Told what has been received; a total of 0 is not known. False: stop, Cancelled.
  std::function<bool(int64_t bytes, int64_t total)> progress;
  std::stop_token stop;  // Cancelled, at once
};

struct Response {
  int status = 0;
  Headers headers;
  std::string body;  // of an error at most its first 64 KiB
  int tries = 1;

  bool ok() const { return status >= 200 && status < 300; }
  // The value of a header, whatever its case; "" when there is none.
  absl::string_view Header(absl::string_view name) const;
};

// The status that goes with an answer: NotFound for 404, PermissionDenied for 403, Unauthenticated
// for 401, FailedPrecondition for 412, OutOfRange for 416, ResourceExhausted for 429, Unavailable
// for 5xx and what else may pass; "the server answers HTTP 503".
absl::Status StatusOf(const Response& response);
// Whether an answer of this HTTP status may be another one next time: 408, 429, 500, 502, 503, 504.
bool MayPass(int status);

// Whether a secret may be sent there: over TLS, or to this very machine.
bool IsPrivateAddress(absl::string_view url);
// Whether a secret can stand in a header: no space, no line's end.
bool FitsHeader(absl::string_view secret);
// At most a line of what a server says.
std::string ServerWords(absl::string_view text);

// All but letters, digits and -._~ as %XX; a slash stays when `keep_slash`.
std::string PercentEncode(absl::string_view text, bool keep_slash);

// The delay that a Retry-After header asks for, in seconds or as a date.
std::optional<absl::Duration> ParseRetryAfter(absl::string_view value, absl::Time now);
// A date as HTTP writes it: "Sun, 06 Nov 1994 08:49:37 GMT".
std::optional<absl::Time> ParseHttpDate(absl::string_view value);

}  // namespace muster::net
