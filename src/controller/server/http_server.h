// A small HTTP/1.1 server. Slow or hostile clients do not delay others.
#pragma once

#include <openssl/ssl.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster::controller {

struct HttpRequest {
  std::string method;
  std::string path;  // without the query
  std::string body;
};

struct HttpResponse {
  int status = 200;
  std::string body;
  std::string type = "text/plain";
};

struct HttpServerOptions {
  int port = 0;            // 0: any free port, see port()
  SSL_CTX* tls = nullptr;  // outlives the server; null: plain HTTP
  size_t max_body = 0;
  // From the connection, or the first byte of a later request, until the response is sent.
  absl::Duration request_time = absl::Seconds(10);
  absl::Duration idle_time = absl::Minutes(1);  // between requests
  // Beyond this, the connection that has been idle or waiting for longest is closed.
  size_t max_connections = 256;
  std::function<HttpResponse(const HttpRequest&)> handle;  // called on the server's thread
};

// One thread serves all connections with non-blocking I/O. A slow client costs a file descriptor
// until its deadline. The total memory for incomplete requests is limited.
class HttpServer {
 public:
  // Returns Unavailable if it cannot listen on the port.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(HttpServerOptions options);
  // Closes all connections.
  ~HttpServer();

  int port() const;

 private:
  class Loop;
  explicit HttpServer(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

}  // namespace muster::controller
