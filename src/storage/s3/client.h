// A client of S3 that signs its requests.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/variables.h"
#include "net/http_client.h"
#include "storage/s3/credentials.h"
#include "storage/url.h"

namespace muster::storage {

struct S3Options {
  std::string endpoint;  // "" for Amazon's
  std::string region = "us-east-1";
  int64_t part_bytes = 8 << 20;  // at least 5 MiB; doubles as the object grows
  net::HttpOptions http;

  // Reads AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_REGION, AWS_DEFAULT_REGION, then the profile's
  // endpoint_url and region. AWS_CA_BUNDLE takes precedence over HttpOptions::FromEnvironment().
  static absl::StatusOr<S3Options> FromVariables(const base::Variables& variables);
};

struct S3Request {
  std::string method = "GET";
  Url url;                                                 // the name "" is the bucket itself
  std::vector<std::pair<std::string, std::string>> query;  // not encoded, in any order
  net::Headers headers;
  absl::string_view body;
  net::BodySink* sink = nullptr;
};

// Thread-safe.
class S3Client {
 public:
  // Uses the settings and credentials of Amazon's tools (docs/storage.md).
  static absl::StatusOr<std::unique_ptr<S3Client>> FromVariables(const base::Variables& variables);
  S3Client(S3Options options, std::unique_ptr<net::HttpClient> http,
           std::unique_ptr<AwsCredentialChain> credentials)
      : options_(std::move(options)),
        http_(std::move(http)),
        credentials_(std::move(credentials)) {}

  // Returns the response, whatever its status. Retries once with new credentials if they have
  // expired.
  absl::StatusOr<net::Response> Send(const S3Request& request);

  // Returns the error of a response; OK for status 2xx. Use Explain() for HEAD.
  static absl::Status ErrorOf(const Url& url, const net::Response& response);
  // Returns the error of a failed HEAD. Its response has no body, so this sends a listing request
  // to get the reason.
  absl::Status Explain(const Url& url, const net::Response& response);

  const S3Options& options() const { return options_; }

 private:
  std::string AddressOf(const S3Request& request) const;

  const S3Options options_;
  const std::unique_ptr<net::HttpClient> http_;
  const std::unique_ptr<AwsCredentialChain> credentials_;
};

}  // namespace muster::storage
