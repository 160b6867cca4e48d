// Requests to S3, signed, and what its answers mean.
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
  std::string endpoint;  // "": Amazon's
  std::string region = "us-east-1";
  int64_t part_bytes = 8 << 20;  // at least 5 MiB, but of the last; grows with the object
  net::HttpOptions http;

  // AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_REGION, AWS_DEFAULT_REGION, then the profile's
  // endpoint_url and region; AWS_CA_BUNDLE before what HttpOptions read.
  static absl::StatusOr<S3Options> FromVariables(const Variables& variables);
};

struct S3Request {
  std::string method = "GET";
  Url url;                                                 // with the name "": the bucket itself
  std::vector<std::pair<std::string, std::string>> query;  // not encoded, in any order
  net::Headers headers;
  absl::string_view body;
  net::BodySink* sink = nullptr;
};

// Thread-safe.
class S3Client {
 public:
  S3Client(S3Options options, std::unique_ptr<net::HttpClient> http,
           std::unique_ptr<AwsCredentialChain> credentials)
      : options_(std::move(options)),
        http_(std::move(http)),
        credentials_(std::move(credentials)) {}

  // The answer, whatever it is; credentials that have just expired are replaced first.
  absl::StatusOr<net::Response> Send(const S3Request& request);

  // The error that an answer other than 2xx means. That of a HEAD has no body to say more: Explain.
  static absl::Status ErrorOf(const Url& url, const net::Response& response);
  // For a HEAD that failed: asks once more, in a way that is answered with words.
  absl::Status Explain(const Url& url, const net::Response& response);

  const S3Options& options() const { return options_; }

 private:
  std::string AddressOf(const S3Request& request) const;

  const S3Options options_;
  const std::unique_ptr<net::HttpClient> http_;
  const std::unique_ptr<AwsCredentialChain> credentials_;
};

}  // namespace muster::storage
