#include "dashboard/server.h"

#include <zlib.h>

#include <atomic>
#include <thread>
#include <utility>

// As the library was built: its classes have other layouts without it.
#define CPPHTTPLIB_OPENSSL_SUPPORT
#include <httplib.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace muster::dashboard {
namespace {

constexpr size_t kMaxBody = 4 << 20;
constexpr size_t kMinCompressed = 8 << 10;
constexpr int kRequestThreads = 32;  // beside the streams
constexpr time_t kReadTimeout = 10;  // seconds
constexpr time_t kWriteTimeout = 30;
constexpr time_t kKeepAliveTimeout = 2;  // the end of the server waits for it
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'";

Request ToRequest(const httplib::Request& from) {
  Request request{.method = from.method, .path = from.path, .body = from.body};
  for (const auto& [name, value] : from.params) request.query.emplace(name, value);
  for (const auto& [name, value] : from.headers) {
    request.headers.emplace(absl::AsciiStrToLower(name), value);
  }
  return request;
}

// Compresses at a level that costs less time than the transfer of the difference. Returns "" if
// that fails.
std::string Gzip(const std::string& text) {
  constexpr int kGzipWindow = 15 + 16;
  z_stream stream{};
  if (::deflateInit2(&stream, 1, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK) return "";
  std::string result(::deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  const bool done = ::deflate(&stream, Z_FINISH) == Z_STREAM_END;
  result.resize(stream.total_out);
  ::deflateEnd(&stream);
  return done ? result : "";
}

void SetSecurityHeaders(httplib::Response& to, bool tls) {
  to.set_header("Content-Security-Policy", kPolicy);
  to.set_header("X-Content-Type-Options", "nosniff");
  to.set_header("Referrer-Policy", "no-referrer");
  to.set_header("Cross-Origin-Opener-Policy", "same-origin");
  to.set_header("Cross-Origin-Resource-Policy", "same-origin");
  if (tls) to.set_header("Strict-Transport-Security", "max-age=31536000");
}

void Send(const Request& request, Response from, httplib::Response& to, bool tls) {
  to.status = from.status;
  SetSecurityHeaders(to, tls);
  bool cached = false;
  for (const auto& [name, value] : from.headers) {
    to.set_header(name.c_str(), value);
    cached = cached || name == "Cache-Control";
  }
  if (!cached) to.set_header("Cache-Control", "no-store");
  // The library compresses text/* by itself, and nothing with parameters in its type.
  const bool left_to_us = !absl::StartsWith(from.type, "text/");
  if (left_to_us && from.body.size() >= kMinCompressed &&
      absl::StrContains(request.Header("accept-encoding"), "gzip")) {
    if (std::string small = Gzip(from.body); !small.empty()) {
      from.body = std::move(small);
      to.set_header("Content-Encoding", "gzip");
      to.set_header("Vary", "Accept-Encoding");
    }
  }
  if (from.status != 204) to.set_content(std::move(from.body), from.type.c_str());
}

class SinkWriter final : public StreamWriter {
 public:
  SinkWriter(httplib::DataSink& sink, const std::atomic<bool>& stopping)
      : sink_(sink), stopping_(stopping) {}
  bool Write(const std::string& bytes) override {
    return !stopping_ && sink_.is_writable() && sink_.write(bytes.data(), bytes.size());
  }

 private:
  httplib::DataSink& sink_;
  const std::atomic<bool>& stopping_;
};

}  // namespace

class Server::Impl {
 public:
  Impl(const ServerOptions& options, ServerHandlers handlers)
      : handlers_(std::move(handlers)),
        max_streams_(options.max_streams),
        tls_(!options.certificate.empty()) {
    if (tls_) {
      server_ =
          std::make_unique<httplib::SSLServer>(options.certificate.c_str(), options.key.c_str());
    } else {
      server_ = std::make_unique<httplib::Server>();
    }
  }
  ~Impl() {
    stopping_ = true;
    server_->stop();
    if (thread_.joinable()) thread_.join();
  }

  absl::Status Start(const ServerOptions& options) {
    if (!server_->is_valid()) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot use the certificate ", options.certificate, " with the key ",
                       options.key, "; both must be PEM files that belong together"));
    }
    const int threads = kRequestThreads + max_streams_;
    server_->new_task_queue = [threads] { return new httplib::ThreadPool(threads); };
    server_->set_payload_max_length(kMaxBody);
    server_->set_read_timeout(kReadTimeout);
    server_->set_write_timeout(kWriteTimeout);
    server_->set_tcp_nodelay(true);
    server_->set_keep_alive_timeout(kKeepAliveTimeout);
    server_->set_keep_alive_max_count(1000);
    server_->set_exception_handler([this](const httplib::Request& request,
                                          httplib::Response& response, std::exception_ptr) {
      Send(ToRequest(request), ErrorResponse(500, "INTERNAL", "internal error"), response, tls_);
    });
    // By default the library sets SO_REUSEPORT, with which another program could share the port.
    server_->set_socket_options([](socket_t socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    });
    const auto serve = [this](const httplib::Request& from, httplib::Response& to) {
      Serve(from, to);
    };
    // GET and HEAD are answered before the library matches routes; the others have a body to read.
    server_->set_pre_routing_handler([this](const httplib::Request& from, httplib::Response& to) {
      if (from.method != "GET" && from.method != "HEAD") {
        return httplib::Server::HandlerResponse::Unhandled;
      }
      Serve(from, to);
      return httplib::Server::HandlerResponse::Handled;
    });
    server_->Post(".*", serve).Put(".*", serve).Patch(".*", serve).Delete(".*", serve);
    server_->Options(".*", serve);
    // Requests that the library itself refuses, such as one with too long an address.
    server_->set_error_handler([this](const httplib::Request& from, httplib::Response& to) {
      if (!to.body.empty()) return;
      Send(ToRequest(from), ErrorResponse(to.status, "REFUSED", "the request cannot be served"), to,
           tls_);
    });
    port_ = options.port == 0 ? server_->bind_to_any_port(options.host)
            : server_->bind_to_port(options.host, options.port) ? options.port
                                                                : -1;
    if (port_ <= 0) {
      return absl::UnavailableError(
          options.port == 0
              ? absl::StrCat("cannot listen on ", options.host)
              : absl::StrCat("cannot listen on ", options.host, " port ", options.port,
                             ": it is in use or not of this machine; choose another with --port"));
    }
    thread_ = std::thread([this] { server_->listen_after_bind(); });
    return absl::OkStatus();
  }

  int port() const { return port_; }

 private:
  void Serve(const httplib::Request& from, httplib::Response& to) {
    const Request request = ToRequest(from);
    if (!handlers_.is_stream(request)) return Send(request, handlers_.handle(request), to, tls_);
    if (++streams_ > max_streams_) {
      --streams_;
      Response busy = ErrorResponse(503, "RESOURCE_EXHAUSTED", "too many open pages");
      return Send(request, std::move(busy), to, tls_);
    }
    SetSecurityHeaders(to, tls_);
    to.set_header("Cache-Control", "no-store");
    to.set_chunked_content_provider(
        "text/event-stream",
        [this, request](size_t, httplib::DataSink& sink) {
          SinkWriter writer(sink, stopping_);
          handlers_.stream(request, writer);
          sink.done();
          return true;
        },
        [this](bool) { --streams_; });
  }

  const ServerHandlers handlers_;
  const int max_streams_;
  const bool tls_;
  std::unique_ptr<httplib::Server> server_;
  std::atomic<int> streams_ = 0;
  std::atomic<bool> stopping_ = false;
  int port_ = 0;
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options,
                                                      ServerHandlers handlers) {
  auto impl = std::make_unique<Impl>(options, std::move(handlers));
  if (const absl::Status started = impl->Start(options); !started.ok()) return started;
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;
int Server::port() const { return impl_->port(); }

}  // namespace muster::dashboard
