#include "controller/server/http_connection.h"

#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "controller/catch_exceptions.h"

namespace muster::controller {
namespace {

constexpr size_t kMaxHead = size_t{16} << 10;
constexpr size_t kReadBytes = size_t{64} << 10;

struct Head {
  std::string method;
  std::string path;
  size_t body = 0;
  bool keep = true;
  bool expects_continue = false;
  int error = 0;  // HTTP status of the response; 0: none
};

const char* PhraseOf(int status) {
  static const auto& phrases = *new std::map<int, const char*>{{200, "OK"},
                                                               {400, "Bad Request"},
                                                               {404, "Not Found"},
                                                               {411, "Length Required"},
                                                               {413, "Payload Too Large"},
                                                               {500, "Internal Server Error"},
                                                               {503, "Service Unavailable"}};
  const auto found = phrases.find(status);
  return found == phrases.end() ? "Unknown" : found->second;
}

void ReadField(absl::string_view line, Head& head) {
  const std::pair<absl::string_view, absl::string_view> field =
      absl::StrSplit(line, absl::MaxSplits(':', 1));
  const std::string name = absl::AsciiStrToLower(field.first);
  const absl::string_view value = absl::StripAsciiWhitespace(field.second);
  if (name == "content-length") {
    if (!absl::SimpleAtoi(value, &head.body)) head.error = 400;
  } else if (name == "transfer-encoding") {
    head.error = 411;  // kubelets, Prometheus and the API server send no chunked requests
  } else if (name == "connection") {
    if (absl::EqualsIgnoreCase(value, "close")) head.keep = false;
  } else if (name == "expect") {
    head.expects_continue = absl::EqualsIgnoreCase(value, "100-continue");
  }
}

Head ReadHead(absl::string_view text) {
  Head head;
  std::vector<absl::string_view> lines = absl::StrSplit(text, "\r\n");
  const std::vector<absl::string_view> words = absl::StrSplit(lines.front(), ' ');
  if (words.size() != 3 || !absl::StartsWith(words[2], "HTTP/1.")) {
    head.error = 400;
    return head;
  }
  head.method = std::string(words[0]);
  // The query is dropped: no endpoint has one.
  head.path = std::string(words[1].substr(0, words[1].find('?')));
  head.keep = words[2] != "HTTP/1.0";
  for (size_t i = 1; i < lines.size(); ++i) ReadField(lines[i], head);
  return head;
}

}  // namespace

HttpConnection::HttpConnection(base::UniqueFd fd, const HttpServerOptions& options, absl::Time now)
    : options_(options),
      fd_(std::move(fd)),
      state_(options.tls == nullptr ? State::kReading : State::kHandshake),
      wants_(POLLIN) {
  BeginRequest(now, options.request_time);
  if (options.tls == nullptr) return;
  ssl_.reset(SSL_new(options.tls));
  if (ssl_ != nullptr) SSL_set_fd(ssl_.get(), fd_.get());
}

void HttpConnection::BeginRequest(absl::Time now, absl::Duration time) {
  since_ = now;
  deadline_ = now + time;
}

HttpConnection::Io HttpConnection::Wait(int result) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      wants_ = POLLIN;
      return Io::kWait;
    case SSL_ERROR_WANT_WRITE:
      wants_ = POLLOUT;
      return Io::kWait;
    default:
      return Io::kClosed;
  }
}

HttpConnection::Io HttpConnection::Handshake() {
  if (ssl_ == nullptr) return Io::kClosed;
  const int result = SSL_accept(ssl_.get());
  return result == 1 ? Io::kDone : Wait(result);
}

HttpConnection::Io HttpConnection::Read() {
  const size_t before = in_.size();
  in_.resize(before + kReadBytes);
  wants_ = POLLIN;
  ssize_t count = 0;
  Io io = Io::kDone;
  if (ssl_ != nullptr) {
    count = SSL_read(ssl_.get(), in_.data() + before, kReadBytes);
    if (count <= 0) io = Wait(static_cast<int>(count));
  } else {
    count = ::recv(fd_.get(), in_.data() + before, kReadBytes, 0);
    if (count <= 0) io = count < 0 && errno == EAGAIN ? Io::kWait : Io::kClosed;
  }
  in_.resize(before + static_cast<size_t>(std::max<ssize_t>(count, 0)));
  return io;
}

HttpConnection::Io HttpConnection::Write() {
  wants_ = POLLOUT;
  while (sent_ < out_.size()) {
    const size_t rest = out_.size() - sent_;
    ssize_t count = 0;
    if (ssl_ != nullptr) {
      count = SSL_write(ssl_.get(), out_.data() + sent_, static_cast<int>(rest));
      if (count <= 0) return Wait(static_cast<int>(count));
    } else {
      count = ::send(fd_.get(), out_.data() + sent_, rest, MSG_NOSIGNAL);
      if (count < 0) return errno == EAGAIN ? Io::kWait : Io::kClosed;
    }
    sent_ += static_cast<size_t>(count);
  }
  return Io::kDone;
}

void HttpConnection::Respond(const HttpResponse& response, bool keep, bool head_only) {
  keep_ = keep;
  out_ = absl::StrCat(
      "HTTP/1.1 ", response.status, " ", PhraseOf(response.status),
      "\r\nContent-Type: ", response.type, "\r\nContent-Length: ", response.body.size(),
      keep ? "" : "\r\nConnection: close", "\r\n\r\n", head_only ? "" : response.body);
  sent_ = 0;
  state_ = State::kWriting;
}

bool HttpConnection::Serve() {
  const size_t end = in_.find("\r\n\r\n");
  if (end == std::string::npos) {
    if (in_.size() <= kMaxHead) return false;
    Respond({.status = 400}, /*keep=*/false);
    return true;
  }
  Head head = ReadHead(absl::string_view(in_).substr(0, end));
  if (head.error == 0 && head.body > options_.max_body) head.error = 413;
  if (head.error != 0) {
    Respond({.status = head.error}, /*keep=*/false);
    return true;
  }
  const size_t begin = end + 4;
  if (in_.size() < begin + head.body) {
    if (!head.expects_continue || std::exchange(continued_, true)) return false;
    out_ = "HTTP/1.1 100 Continue\r\n\r\n";
    sent_ = 0;
    return Write() == Io::kClosed;  // short enough for any socket buffer
  }
  const HttpRequest request{.method = std::move(head.method),
                            .path = std::move(head.path),
                            .body = in_.substr(begin, head.body)};
  in_.erase(0, begin + head.body);
  in_.shrink_to_fit();
  continued_ = false;
  HttpResponse response;
  const absl::Status handled = CatchExceptions([&] {
    response = options_.handle(request);
    return absl::OkStatus();
  });
  if (!handled.ok()) response = {.status = 500, .body = absl::StrCat(handled.message(), "\n")};
  Respond(response, head.keep, /*head_only=*/request.method == "HEAD");
  return true;
}

bool HttpConnection::Advance(absl::Time now) {
  has_more_ = false;
  for (;;) {
    ERR_clear_error();  // SSL_get_error() reads the queue of this thread
    Io io = Io::kDone;
    if (state_ == State::kHandshake) {
      io = Handshake();
      if (io == Io::kDone) state_ = State::kReading;
    } else if (state_ == State::kReading) {
      if (Serve()) continue;
      const bool first = idle();
      io = Read();
      if (first && !in_.empty()) BeginRequest(now, options_.request_time);
    } else {
      io = Write();
      if (io == Io::kDone && !keep_) io = Io::kClosed;
      if (io == Io::kDone) {
        out_.clear();
        served_ = true;
        state_ = State::kReading;
        wants_ = POLLIN;
        BeginRequest(now, in_.empty() ? options_.idle_time : options_.request_time);
        has_more_ = !in_.empty() || (ssl_ != nullptr && SSL_pending(ssl_.get()) > 0);
        return true;  // other connections are served before its next request
      }
    }
    if (io != Io::kDone) return io == Io::kWait;
  }
}

}  // namespace muster::controller
