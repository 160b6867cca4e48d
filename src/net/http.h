// HTTP requests and responses.
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

// Streams a request body that is not held in memory.
class BodySource {
 public:
  virtual ~BodySource() = default;
  virtual int64_t size() const = 0;  // -1: unknown; the body is sent chunked
  // Fills `buffer` and returns the number of bytes; 0 at the end.
  virtual absl::StatusOr<size_t> Read(absl::Span<char> buffer) = 0;
  // Restarts from the first byte, before a retry. An error becomes the result of the request.
  virtual absl::Status Rewind() = 0;
};

// Receives the body of a successful (2xx) response as it arrives.
class BodySink {
 public:
  virtual ~BodySink() = default;
  // An error ends the transfer and becomes the result of the request.
  virtual absl::Status Write(absl::string_view bytes) = 0;
  // Discards the bytes written so far: the connection was lost, and the request is retried.
  virtual absl::Status Rewind() = 0;
};

// Signs a request with AWS Signature Version 4, for Amazon S3 and compatible services. REQUIRES:
// the request has a header x-amz-content-sha256, and a URL with a sorted query in which all but
// unreserved characters are percent-encoded.
struct AwsSignature {
  std::string region;
  std::string service;
  std::string access_key;
  std::string secret_key;
};

// TLS trust roots and client identity, in PEM.
struct Tls {
  std::string authorities;  // the only trust roots; "": those of HttpOptions
  std::string certificate;  // of the client, with its chain; "": none
  std::string key;          // of the client, without a passphrase
  std::string server_name;  // the name to verify; "": the URL's host

  bool operator==(const Tls&) const = default;
};

// `body`, `source`, `sink` and `tls` must outlive the call that sends the request.
struct Request {
  std::string method = "GET";
  std::string url;
  Headers headers;
  absl::string_view body;
  BodySource* source = nullptr;  // instead of `body`
  BodySink* sink = nullptr;      // instead of Response::body
  // Without a sink, a larger response fails with OutOfRange.
  int64_t max_response_bytes = 16 << 20;
  int max_redirects = 0;  // never from https to http
  // Allows a retry when the server may already have executed the request.
  bool idempotent = true;
  // If not idempotent: allows a retry when the server certainly has not executed the request,
  // because no connection was made or it returned 429, or 503 with a Retry-After.
  bool retry_when_rejected = false;
  // Limits one attempt.
  absl::Duration timeout = absl::InfiniteDuration();
  // Limits all attempts and the delays between them. Also cuts an attempt short, unlike
  // RetryPolicy::total_timeout.
  absl::Duration total_timeout = absl::InfiniteDuration();
  // Limits the time without data, for a response that streams events. Replaces
  // HttpOptions::stall_timeout.
  std::optional<absl::Duration> idle_timeout;
  const Tls* tls = nullptr;
  std::optional<AwsSignature> signature;
  // Called with the bytes received and the total (0 if unknown). Returning false cancels the
  // request.
  std::function<bool(int64_t bytes, int64_t total)> progress;
  // Cancels the request immediately.
  std::stop_token stop;
};

struct Response {
  int status = 0;
  Headers headers;
  std::string body;  // at most the first 64 KiB if !ok()
  int tries = 1;     // attempts made, this one included

  bool ok() const { return status >= 200 && status < 300; }
  // Returns the value of a header (case-insensitive name), or "" if absent.
  absl::string_view Header(absl::string_view name) const;
};

// Returns the status for a response: OK for 2xx, NotFound for 404, PermissionDenied for 403,
// Unauthenticated for 401, FailedPrecondition for 412, OutOfRange for 416, ResourceExhausted for
// 429, Unavailable for 5xx and everything else. The message is "the server returned HTTP 503".
absl::Status StatusOf(const Response& response);
// Returns true for transient HTTP statuses: 408, 429, 500, 502, 503, 504.
bool IsRetryableStatus(int status);

// Returns true if a secret may be sent to `url`: it uses TLS, or the host is loopback.
bool IsSafeForSecrets(absl::string_view url);
// Returns true if `secret` is valid in a header: no spaces, no control characters.
bool FitsHeader(absl::string_view secret);
// Returns untrusted text from a server as at most one printable line, for messages.
std::string ServerMessage(absl::string_view text);

// Encodes all but letters, digits and -._~ as %XX. Keeps slashes if `keep_slash`.
std::string PercentEncode(absl::string_view text, bool keep_slash);

// Parses a Retry-After header, which holds seconds or a date. Returns nullopt if it is malformed.
std::optional<absl::Duration> ParseRetryAfter(absl::string_view value, absl::Time now);
// Parses an HTTP date: "Sun, 06 Nov 1994 08:49:37 GMT".
std::optional<absl::Time> ParseHttpDate(absl::string_view value);

}  // namespace muster::net
