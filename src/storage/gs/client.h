// A client of Google Cloud Storage's JSON API.
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
  bool emulator = false;          // no credentials are sent
  int64_t chunk_bytes = 8 << 20;  // of an upload; a multiple of 256 KiB
  net::HttpOptions http;

  // Reads STORAGE_EMULATOR_HOST (host:port or a URL), else CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE.
  static absl::StatusOr<GsOptions> FromVariables(const base::Variables& variables);
};

struct GsRequest {
  enum class To {
    kObject,
    kList,     // the objects of the bucket
    kBucket,   // the bucket itself
    kBuckets,  // the collection of buckets, to create one
    kUpload,   // a new object
    kSession,  // an upload in progress; its address authorizes the request
  };
  std::string method = "GET";
  To to = To::kObject;
  Url url;
  std::vector<std::pair<std::string, std::string>> query = {};  // not encoded
  net::Headers headers = {};
  absl::string_view body = {};
  net::BodySink* sink = nullptr;
  std::string session = {};  // the address of the upload; a secret
  bool idempotent = true;
};

// Thread-safe.
class GsClient {
 public:
  // Uses the settings and credentials of Google's tools (docs/storage.md).
  static absl::StatusOr<std::unique_ptr<GsClient>> FromVariables(const base::Variables& variables);
  // Requests are anonymous if `credentials` is null.
  GsClient(GsOptions options, std::unique_ptr<net::HttpClient> http,
           std::unique_ptr<GoogleCredentialChain> credentials)
      : options_(std::move(options)),
        http_(std::move(http)),
        credentials_(std::move(credentials)) {}

  // Returns the response, whatever its status. Retries once with a new token after a 401. Returns
  // InvalidArgument for names that the storage does not allow.
  absl::StatusOr<net::Response> Send(const GsRequest& request);
  // See net::HttpClient.
  bool WaitBeforeRetry(int tries, const net::Response& response) {
    return http_->WaitBeforeRetry(tries, response);
  }

  // Returns the error of a response; OK for status 2xx.
  static absl::Status ErrorOf(const GsRequest& request, const net::Response& response);

  const GsOptions& options() const { return options_; }

 private:
  std::string AddressOf(const GsRequest& request) const;

  const GsOptions options_;
  const std::unique_ptr<net::HttpClient> http_;
  const std::unique_ptr<GoogleCredentialChain> credentials_;
};

}  // namespace muster::storage
