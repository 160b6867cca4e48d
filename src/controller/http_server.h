// A small HTTP/1.1 server that slow or hostile clients cannot keep from answering others.
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
  int port = 0;            // 0: any, see port()
  SSL_CTX* tls = nullptr;  // outlives the server; null: without TLS
  size_t max_body = 0;
  // From the connection, or the first byte of a later request, until the answer is sent.
  absl::Duration request_time = absl::Seconds(10);
  absl::Duration idle_time = absl::Minutes(1);  // between requests
  // With more, the one that has been waited for longest is closed.
  size_t max_connections = 256;
  std::function<HttpResponse(const HttpRequest&)> handle;  // called in the server's one thread
};

// Connections are served by one thread, which waits for none of them: a client that sends or reads
// slowly costs a file descriptor until its time is over. Bodies that have not arrived whole take a
// limited amount of memory, all together.
class HttpServer {
 public:
  // Unavailable when the port cannot be listened on.
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
