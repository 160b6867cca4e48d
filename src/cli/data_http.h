// Downloads over HTTP, with libcurl.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace muster::cli {

// Told how far a download is; a total of 0 is not known. False: stop.
using HttpProgress = std::function<bool(int64_t bytes, int64_t total)>;

// libcurl is loaded when the first client is made, not with the program: it brings two dozen
// libraries, which every other command would wait for.
class HttpClient {
 public:
  // FailedPrecondition when libcurl is not installed.
  static absl::StatusOr<std::unique_ptr<HttpClient>> Create();
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // The content of a http:// or https:// URL. Certificates are checked; from https it is never led
  // to anything else; proxies come from the environment, as libcurl documents. A server has 5 s to
  // answer the connection and must not fall silent for 15 s; ten minutes are the end. NotFound for
  // 404, OutOfRange for more than `max_bytes`, Cancelled when `progress` says so, Unavailable
  // otherwise.
  absl::StatusOr<std::string> Get(const std::string& url, int64_t max_bytes,
                                  const HttpProgress& progress);

 private:
  struct Library;
  explicit HttpClient(std::unique_ptr<Library> library);

  std::unique_ptr<Library> library_;
};

}  // namespace muster::cli
