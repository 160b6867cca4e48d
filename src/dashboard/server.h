// Serves HTTP, or HTTPS, with cpp-httplib. Only server.cc includes that library.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "dashboard/http.h"

namespace muster::dashboard {

struct ServerOptions {
  std::string host = "127.0.0.1";  // the address to listen on
  int port = 0;                    // 0 = any free one
  std::string certificate, key;    // files; "" = without TLS
  int max_streams = 200;
};

// Writes to one client. Write() returns false once the client or the server is gone.
class StreamWriter {
 public:
  virtual ~StreamWriter() = default;
  virtual bool Write(const std::string& bytes) = 0;
};

struct ServerHandlers {
  std::function<Response(const Request&)> handle;
  // Returns whether the request is for a stream, which handle() would refuse.
  std::function<bool(const Request&)> is_stream;
  // Serves a stream until it returns. Called on a thread of its own; must return soon after Write()
  // has returned false.
  std::function<void(const Request&, StreamWriter&)> stream;
};

// The handlers are called on several threads.
class Server {
 public:
  // Returns Unavailable if it cannot listen there, InvalidArgument for an unusable certificate.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                                       ServerHandlers handlers);
  // Ends all connections. Streams must have been told to end.
  ~Server();

  int port() const;

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::dashboard
