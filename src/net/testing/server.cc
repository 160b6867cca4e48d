#include "net/testing/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace muster::net {

std::string Exchange::header(const std::string& name) const {
  const auto found = headers_.find(name);
  return found == headers_.end() ? "" : found->second;
}

bool Exchange::More() {
  char bytes[65536];
  const ssize_t n = ::recv(fd_, bytes, sizeof(bytes), 0);
  if (n <= 0) return false;
  buffer_.append(bytes, static_cast<size_t>(n));
  return true;
}

bool Exchange::ReadHead() {
  size_t end = 0;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
    if (!More()) return false;
  }
  const std::vector<std::string> lines = absl::StrSplit(buffer_.substr(0, end), "\r\n");
  buffer_.erase(0, end + 4);
  const std::vector<std::string> words = absl::StrSplit(lines[0], ' ');
  method_ = words[0];
  target_ = words[1];
  headers_.clear();
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::pair<std::string, std::string> header =
        absl::StrSplit(lines[i], absl::MaxSplits(':', 1));
    headers_[absl::AsciiStrToLower(header.first)] =
        std::string(absl::StripAsciiWhitespace(header.second));
  }
  body_left_ = 0;
  (void)absl::SimpleAtoi(header("content-length"), &body_left_);
  cut_ = false;
  return true;
}

std::string Exchange::Body(int64_t bytes) {
  if (header("expect") == "100-continue") {
    Send("HTTP/1.1 100 Continue\r\n\r\n");
    headers_.erase("expect");
  }
  const int64_t wanted = std::min(bytes, body_left_);
  while (static_cast<int64_t>(buffer_.size()) < wanted && More()) {
  }
  const std::string body = buffer_.substr(0, static_cast<size_t>(wanted));
  buffer_.erase(0, body.size());
  body_left_ -= static_cast<int64_t>(body.size());
  return body;
}

void Exchange::Send(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

void Exchange::Reply(int status, absl::string_view body, const Headers& headers) {
  if (header("expect").empty()) (void)Body();
  std::string head = absl::StrCat("HTTP/1.1 ", status, " Word\r\n");
  bool sized = false;
  for (const auto& [name, value] : headers) {
    absl::StrAppend(&head, name, ": ", value, "\r\n");
    sized = sized || name == "Content-Length";
  }
  if (!sized && status != 204) absl::StrAppend(&head, "Content-Length: ", body.size(), "\r\n");
  Send(absl::StrCat(head, "\r\n", method_ == "HEAD" ? "" : body));
  if (body_left_ > 0) cut_ = true;
}

void Exchange::Stall() {
  end_.WaitForNotification();
  cut_ = true;
}

base::UniqueFd ListenOnLoopback(int& port) {
  base::UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof(address);
  if (::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) std::abort();
  ::listen(listener.get(), 64);
  ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
  port = ntohs(address.sin_port);
  return listener;
}

TestServer::TestServer(Handler handler) : handler_(std::move(handler)) {
  listener_ = ListenOnLoopback(port_);
  acceptor_ = std::jthread([this] { Accept(); });
}

TestServer::~TestServer() {
  end_.Notify();
  ::shutdown(listener_.get(), SHUT_RDWR);
  acceptor_.join();
  {
    absl::MutexLock lock(&mutex_);
    for (const base::UniqueFd& fd : open_) ::shutdown(fd.get(), SHUT_RDWR);
  }
  threads_.clear();  // joins
}

std::string TestServer::address() const { return absl::StrCat("http://127.0.0.1:", port_); }

void TestServer::Accept() {
  for (;;) {
    base::UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd.valid()) return;
    ++connections_;
    const int number = fd.get();
    {
      absl::MutexLock lock(&mutex_);
      open_.push_back(std::move(fd));
    }
    threads_.emplace_back([this, number] { Serve(number); });
  }
}

void TestServer::Serve(int fd) {
  Exchange exchange(fd, end_);
  while (exchange.ReadHead()) {
    ++requests_;
    handler_(exchange);
    if (exchange.cut_) break;
    (void)exchange.Body();
  }
  // The descriptor is closed only with the server, so that its number cannot be reused before.
  ::shutdown(fd, SHUT_RDWR);
}

}  // namespace muster::net
