#include "controller/server/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/files/unique_fd.h"
#include "gtest/gtest.h"

namespace muster::controller {
namespace {

constexpr char kAsk[] = "GET /x?y HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

HttpServerOptions Options() {
  return {.max_body = 100'000, .handle = [](const HttpRequest& request) {
            return HttpResponse{
                .body = absl::StrCat(request.method, " ", request.path, " ", request.body.size())};
          }};
}

base::UniqueFd Connect(const HttpServer& server) {
  base::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {.sin_family = AF_INET,
                         .sin_port = htons(static_cast<uint16_t>(server.port())),
                         .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)},
                         .sin_zero = {}};
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  timeval limit{.tv_sec = 30, .tv_usec = 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  return fd;
}

void Send(const base::UniqueFd& fd, absl::string_view text) {
  EXPECT_EQ(::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
}

// Returns all bytes until the server closes the connection.
std::string ReadAll(const base::UniqueFd& fd) {
  std::string text;
  char piece[4096];
  for (;;) {
    const ssize_t count = ::recv(fd.get(), piece, sizeof(piece), 0);
    if (count <= 0) return text;
    text.append(piece, static_cast<size_t>(count));
  }
}

std::string Ask(const HttpServer& server, absl::string_view request) {
  const base::UniqueFd fd = Connect(server);
  Send(fd, request);
  return ReadAll(fd);
}

TEST(HttpServerTest, Answers) {
  const auto server = HttpServer::Start(Options()).value();
  const std::string answer = Ask(*server, kAsk);
  EXPECT_TRUE(absl::StartsWith(answer, "HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_TRUE(absl::EndsWith(answer, "\r\n\r\nGET /x 0")) << answer;
}

TEST(HttpServerTest, AConnectionServesManyRequests) {
  const auto server = HttpServer::Start(Options()).value();
  const base::UniqueFd fd = Connect(*server);
  Send(fd, "POST /a HTTP/1.1\r\ncontent-length: 3\r\n\r\nab");
  Send(fd, "cGET /b HTTP/1.1\r\n\r\n");
  Send(fd, kAsk);
  const std::string answers = ReadAll(fd);
  for (const char* one : {"POST /a 3", "GET /b 0", "GET /x 0"}) {
    EXPECT_TRUE(absl::StrContains(answers, one)) << answers;
  }
}

TEST(HttpServerTest, PipelinedRequestsAreAllServed) {
  const auto server = HttpServer::Start(Options()).value();
  const base::UniqueFd fd = Connect(*server);
  std::string requests;
  for (int i = 0; i < 100; ++i) absl::StrAppend(&requests, "GET /", i, " HTTP/1.1\r\n\r\n");
  Send(fd, absl::StrCat(requests, kAsk));
  const std::string answers = ReadAll(fd);
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(absl::StrContains(answers, absl::StrCat("GET /", i, " 0"))) << i;
  }
}

TEST(HttpServerTest, HeadHasNoBody) {
  const auto server = HttpServer::Start(Options()).value();
  const std::string answer = Ask(*server, "HEAD /x HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(absl::StrContains(answer, "Content-Length: 9\r\n")) << answer;
  EXPECT_TRUE(absl::EndsWith(answer, "\r\n\r\n")) << answer;
}

TEST(HttpServerTest, AHandlerThatThrowsCausesA500) {
  HttpServerOptions options = Options();
  options.handle = [](const HttpRequest& request) -> HttpResponse {
    if (request.path == "/bad") throw std::runtime_error("boom");
    return {.body = "good"};
  };
  const auto server = HttpServer::Start(std::move(options)).value();
  const std::string answer = Ask(*server, "GET /bad HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(absl::StartsWith(answer, "HTTP/1.1 500 ")) << answer;
  EXPECT_TRUE(absl::EndsWith(Ask(*server, kAsk), "good"));
}

TEST(HttpServerTest, Sends100Continue) {
  const auto server = HttpServer::Start(Options()).value();
  const base::UniqueFd fd = Connect(*server);
  Send(fd,
       "POST / HTTP/1.1\r\nContent-Length: 1\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n");
  char first[64] = {};
  ASSERT_GT(::recv(fd.get(), first, sizeof(first) - 1, 0), 0);
  EXPECT_STREQ(first, "HTTP/1.1 100 Continue\r\n\r\n");
  Send(fd, "x");
  EXPECT_TRUE(absl::EndsWith(ReadAll(fd), "POST / 1"));
}

TEST(HttpServerTest, RejectsMalformedRequests) {
  const auto server = HttpServer::Start(Options()).value();
  const auto status = [&](absl::string_view request) {
    return Ask(*server, request).substr(0, 12);
  };
  EXPECT_EQ(status("nonsense\r\n\r\n"), "HTTP/1.1 400");
  EXPECT_EQ(status("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), "HTTP/1.1 400");
  EXPECT_EQ(status("POST / HTTP/1.1\r\nContent-Length: 100001\r\n\r\n"), "HTTP/1.1 413");
  EXPECT_EQ(status("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), "HTTP/1.1 411");
  EXPECT_EQ(status(std::string(20'000, 'a')), "HTTP/1.1 400");
}

// A slow client occupies a descriptor until its deadline, and nothing else.
TEST(HttpServerTest, SlowClientsDoNotDelayOthers) {
  HttpServerOptions options = Options();
  options.max_connections = 64;
  options.request_time = absl::Minutes(5);
  const auto server = HttpServer::Start(std::move(options)).value();
  std::vector<base::UniqueFd> slow;
  for (int i = 0; i < 200; ++i) {
    slow.push_back(Connect(*server));
    Send(slow.back(), i % 2 == 0 ? "GET / HT" : "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nx");
  }
  const absl::Time begin = absl::Now();
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(absl::EndsWith(Ask(*server, kAsk), "GET /x 0"));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
}

TEST(HttpServerTest, ARequestHasATotalDeadline) {
  HttpServerOptions options = Options();
  options.request_time = absl::Milliseconds(300);
  const auto server = HttpServer::Start(std::move(options)).value();
  const base::UniqueFd fd = Connect(*server);
  const absl::Time begin = absl::Now();
  char piece = 0;
  // The client sends continuously but never completes a request.
  while (::send(fd.get(), "a", 1, MSG_NOSIGNAL) == 1 &&
         ::recv(fd.get(), &piece, 1, MSG_DONTWAIT) != 0 &&
         absl::Now() - begin < absl::Seconds(20)) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_LT(absl::Now() - begin, absl::Seconds(10));
}

TEST(HttpServerTest, LimitsMemoryOfPartialBodies) {
  HttpServerOptions options = Options();
  options.max_body = size_t{8} << 20;
  options.request_time = absl::Minutes(5);
  const auto server = HttpServer::Start(std::move(options)).value();
  std::vector<base::UniqueFd> large;
  std::vector<std::jthread> senders;
  const std::string most(size_t{6} << 20, 'x');
  for (int i = 0; i < 20; ++i) {
    large.push_back(Connect(*server));
    senders.emplace_back([&most, fd = large.back().get()] {
      const std::string head = "POST / HTTP/1.1\r\nContent-Length: 8000000\r\n\r\n";
      (void)!::send(fd, head.data(), head.size(), MSG_NOSIGNAL);
      for (size_t at = 0; at < most.size();) {
        const ssize_t count = ::send(fd, most.data() + at, most.size() - at, MSG_NOSIGNAL);
        if (count <= 0) return;  // the server closed it
        at += static_cast<size_t>(count);
      }
    });
  }
  senders.clear();
  const auto is_closed = [](const base::UniqueFd& fd) {
    char piece = 0;
    const ssize_t count = ::recv(fd.get(), &piece, 1, MSG_DONTWAIT);
    return count == 0 || (count < 0 && errno != EAGAIN);
  };
  // The kernel may buffer everything before the server has read any of it.
  const absl::Time limit = absl::Now() + absl::Minutes(1);
  while (std::count_if(large.begin(), large.end(), is_closed) < 10) {
    ASSERT_LT(absl::Now(), limit);
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_TRUE(absl::EndsWith(Ask(*server, kAsk), "GET /x 0"));
}

}  // namespace
}  // namespace muster::controller
