// Requests to Google Cloud Storage's JSON API, and what its answers mean.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/variables.h"
#include "net/http_client.h"
#include "storage/gs/credentials.h"
#include "storage/url.h"

namespace muster::storage {

struct GsOptions {
  std::string endpoint = "https://storage.googleapis.com";
  bool emulator = false;          // it takes no credentials, and is sent none
  int64_t chunk_bytes = 8 << 20;  // of an upload; a multiple of 256 KiB
  net::HttpOptions http;

  // STORAGE_EMULATOR_HOST (host:port or a URL), else CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE.
  static absl::StatusOr<GsOptions> FromVariables(const Variables& variables);
};

struct GsRequest {
  enum class To {
    kObject,
    kList,     // what is in the bucket
    kBucket,   // the bucket itself
    kBuckets,  // where buckets are made
    kUpload,   // a new object of the name
    kSession,  // an upload that has begun; its address says who we are
  };
  std::string method = "GET";
  To to = To::kObject;
  Url url;
  std::vector<std::pair<std::string, std::string>> query = {};  // not encoded
  net::Headers headers = {};
  absl::string_view body = {};
  net::BodySink* sink = nullptr;
  std::string session = {};  // its address, which is a secret
  bool repeatable = true;
};

// Thread-safe.
class GsClient {
 public:
  // With the settings and credentials that Google's tools use (docs/storage.md).
  static absl::StatusOr<std::unique_ptr<GsClient>> FromVariables(const Variables& variables);
  // Without credentials nobody is told who we are.
  GsClient(GsOptions options, std::unique_ptr<net::HttpClient> http,
           std::unique_ptr<GoogleCredentialChain> credentials)
      : options_(std::move(options)),
        http_(std::move(http)),
        credentials_(std::move(credentials)) {}

  // The answer, whatever it is; a token that is not taken any more is replaced first.
  // InvalidArgument for names that no file there can have.
  absl::StatusOr<net::Response> Send(const GsRequest& request);
  // As net::HttpClient has it.
  bool WaitAfter(int tries, const net::Response& response) {
    return http_->WaitAfter(tries, response);
  }

  // The error that an answer other than 2xx means.
  static absl::Status ErrorOf(const GsRequest& request, const net::Response& response);

  const GsOptions& options() const { return options_; }

 private:
  std::string AddressOf(const GsRequest& request) const;

  const GsOptions options_;
  const std::unique_ptr<net::HttpClient> http_;
  const std::unique_ptr<GoogleCredentialChain> credentials_;
};

}  // namespace muster::storage
