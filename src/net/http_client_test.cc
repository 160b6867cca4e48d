#include "net/http_client.h"

#include <atomic>
#include <cstdlib>
#include <stop_token>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/testing/server.h"

namespace muster::net {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

// Records delays instead of sleeping, and advances the clock by them.
class HttpClientTest : public testing::Test {
 protected:
  HttpClientTest() {
    for (const char* name : {"http_proxy", "all_proxy", "ALL_PROXY"}) ::unsetenv(name);
  }

  HttpOptions Options() {
    HttpOptions options;
    options.clock = &clock_;
    options.stall_timeout = absl::Seconds(1);
    options.sleep = [this](absl::Duration delay) {
      waits_.push_back(delay);
      clock_.Advance(delay);
    };
    return options;
  }
  absl::StatusOr<Response> Do(const Request& request) {
    if (client_ == nullptr) client_ = *HttpClient::Create(Options());
    return client_->Do(request);
  }

  base::FakeClock clock_;
  std::vector<absl::Duration> waits_;
  std::unique_ptr<HttpClient> client_;
};

class StringSink final : public BodySink {
 public:
  absl::Status Write(absl::string_view bytes) override {
    content.append(bytes.data(), bytes.size());
    return static_cast<int64_t>(content.size()) > limit ? absl::ResourceExhaustedError("sink full")
                                                        : absl::OkStatus();
  }
  absl::Status Rewind() override {
    content.clear();
    ++rewinds;
    return absl::OkStatus();
  }

  std::string content;
  int64_t limit = int64_t{1} << 40;
  int rewinds = 0;
};

class StringSource final : public BodySource {
 public:
  explicit StringSource(std::string content, bool sized = true)
      : content_(std::move(content)), sized_(sized) {}
  int64_t size() const override { return sized_ ? static_cast<int64_t>(content_.size()) : -1; }
  absl::StatusOr<size_t> Read(absl::Span<char> buffer) override {
    const size_t n = content_.copy(buffer.data(), buffer.size(), at_);
    at_ += n;
    return n;
  }
  absl::Status Rewind() override {
    at_ = 0;
    return absl::OkStatus();
  }

 private:
  const std::string content_;
  const bool sized_;
  size_t at_ = 0;
};

TEST_F(HttpClientTest, SendsAndReceives) {
  TestServer server([](Exchange& exchange) {
    exchange.Reply(200,
                   absl::StrCat(exchange.method(), " ", exchange.target(), " ",
                                exchange.header("x-color"), " ", exchange.Body()),
                   {{"X-Answer", " yes "}});
  });
  for (const char* method : {"GET", "PUT", "POST", "DELETE"}) {
    const bool sends = absl::StartsWith(method, "P");
    const auto response = Do({.method = method,
                              .url = server.address() + "/a/../b%20c?x=1",
                              .headers = {{"X-Color", "red"}},
                              .body = sends ? "body" : ""});
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->status, 200);
    EXPECT_EQ(response->body, absl::StrCat(method, " /a/../b%20c?x=1 red ", sends ? "body" : ""));
    EXPECT_EQ(response->Header("x-answer"), "yes");
  }
  const auto head = Do({.method = "HEAD", .url = server.address()});
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_EQ(head->body, "");
  EXPECT_NE(head->Header("Content-Length"), "");
}

TEST_F(HttpClientTest, ConnectionsAreReused) {
  TestServer server([](Exchange& exchange) { exchange.Reply(200, "x"); });
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Do({.url = server.address()}).ok());
  EXPECT_EQ(server.connections(), 1);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 10; ++i) EXPECT_TRUE(client_->Do({.url = server.address()}).ok());
      });
    }
  }
  EXPECT_LE(server.connections(), 4);
  EXPECT_EQ(server.requests(), 50);
}

TEST_F(HttpClientTest, ErrorStatusesAreResponses) {
  TestServer server([](Exchange& exchange) { exchange.Reply(404, std::string(100000, 'x')); });
  StringSink sink;
  const auto response = Do({.url = server.address(), .sink = &sink});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 404);
  EXPECT_THAT(response->body, SizeIs(64 << 10));
  EXPECT_EQ(sink.content, "");
  EXPECT_TRUE(waits_.empty());
}

TEST_F(HttpClientTest, RetriesTransientErrors) {
  std::atomic<int> count = 0;
  TestServer server([&](Exchange& exchange) {
    const int kinds[] = {503, 429, 500, 502, 504};
    const int n = count++;
    n < 5 ? exchange.Reply(kinds[n], "not now") : exchange.Reply(200, exchange.Body());
  });
  const auto response = Do({.method = "PUT", .url = server.address(), .body = "again"});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->body, "again");
  EXPECT_EQ(response->tries, 6);
  ASSERT_THAT(waits_, SizeIs(5));
  for (int i = 0; i < 5; ++i) {
    EXPECT_LE(waits_[static_cast<size_t>(i)], absl::Milliseconds(200 << i));
  }
}

TEST_F(HttpClientTest, ReturnsTheLastResponseAfterAllAttempts) {
  TestServer server([](Exchange& exchange) { exchange.Reply(503, "never"); });
  const auto response = Do({.url = server.address()});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 503);
  EXPECT_EQ(response->body, "never");
  EXPECT_EQ(server.requests(), 6);
  EXPECT_THAT(StatusOf(*response).message(), HasSubstr("HTTP 503 after 6 attempts"));
}

TEST_F(HttpClientTest, HonoursRetryAfter) {
  std::atomic<int> count = 0;
  TestServer server([&](Exchange& exchange) {
    count++ == 0 ? exchange.Reply(503, "", {{"Retry-After", "30"}}) : exchange.Reply(200, "x");
  });
  EXPECT_EQ(Do({.url = server.address()})->status, 200);
  EXPECT_EQ(waits_, std::vector<absl::Duration>{absl::Seconds(30)});
  // But not beyond total_timeout.
  TestServer slow([](Exchange& exchange) { exchange.Reply(503, "", {{"Retry-After", "86400"}}); });
  EXPECT_EQ(Do({.url = slow.address()})->status, 503);
  EXPECT_EQ(slow.requests(), 1);
}

TEST_F(HttpClientTest, DoesNotRetryNonIdempotentRequests) {
  TestServer server([](Exchange& exchange) { exchange.Reply(503); });
  EXPECT_EQ(Do({.method = "POST", .url = server.address(), .idempotent = false})->status, 503);
  EXPECT_EQ(server.requests(), 1);
}

TEST_F(HttpClientTest, RetriesRejectedRequestsOnDemand) {
  std::atomic<int> count = 0;
  TestServer server([&](Exchange& exchange) {
    const int n = count++;
    if (n == 0) return exchange.Reply(429);
    if (n == 1) return exchange.Reply(503, "", {{"Retry-After", "1"}});
    n == 2 ? exchange.Reply(200) : exchange.Reply(503);
  });
  Request request{.method = "POST",
                  .url = server.address(),
                  .body = "x",
                  .idempotent = false,
                  .retry_when_rejected = true};
  EXPECT_EQ(Do(request)->status, 200);
  EXPECT_EQ(Do(request)->status, 503);  // the server may have executed it
  EXPECT_EQ(server.requests(), 4);
  waits_.clear();
  request.url = "http://127.0.0.1:1";
  EXPECT_TRUE(absl::IsUnavailable(Do(request).status()));
  EXPECT_THAT(waits_, SizeIs(5));
}

TEST_F(HttpClientTest, LibcurlDoesNotRetryOnAClosedConnection) {
  std::atomic<int> posts = 0;
  TestServer server([&](Exchange& exchange) {
    if (exchange.method() == "GET") return exchange.Reply(200);
    ++posts;
    (void)exchange.Body();
    exchange.Cut();
  });
  ASSERT_TRUE(Do({.url = server.address()}).ok());
  const auto response = Do({.method = "POST",
                            .url = server.address(),
                            .body = "x",
                            .idempotent = false,
                            .retry_when_rejected = true});
  EXPECT_TRUE(absl::IsUnavailable(response.status())) << response.status();
  EXPECT_EQ(posts, 1);
}

TEST_F(HttpClientTest, IdleTimeoutEndsAStream) {
  TestServer server([&](Exchange& exchange) {
    exchange.Send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
    exchange.Stall();
  });
  StringSink sink;
  const absl::Time begin = absl::Now();
  const auto response = Do({.url = server.address(),
                            .sink = &sink,
                            .idempotent = false,
                            .idle_timeout = absl::Milliseconds(200)});
  EXPECT_TRUE(absl::IsUnavailable(response.status())) << response.status();
  EXPECT_THAT(response.status().message(), HasSubstr("timed out waiting for data"));
  EXPECT_EQ(sink.content, "abc");
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(200));
}

TEST_F(HttpClientTest, StopTokenCancelsImmediately) {
  absl::Notification received;
  TestServer server([&](Exchange& exchange) {
    received.Notify();
    exchange.Stall();
  });
  client_ = *HttpClient::Create({});
  std::stop_source source;
  absl::Time asked;
  std::jthread stopper([&] {
    received.WaitForNotification();
    asked = absl::Now();
    source.request_stop();
  });
  const auto response = client_->Do({.url = server.address(), .stop = source.get_token()});
  EXPECT_TRUE(absl::IsCancelled(response.status())) << response.status();
  stopper.join();
  EXPECT_LT(absl::Now() - asked, absl::Milliseconds(900));
  // A cancelled request does not start.
  EXPECT_TRUE(absl::IsCancelled(
      client_->Do({.url = server.address(), .stop = source.get_token()}).status()));
}

TEST_F(HttpClientTest, TotalTimeoutCoversAllAttempts) {
  TestServer server([](Exchange& exchange) { exchange.Stall(); });
  client_ = *HttpClient::Create({});
  const absl::Time begin = absl::Now();
  EXPECT_TRUE(absl::IsUnavailable(
      client_->Do({.url = server.address(), .total_timeout = absl::Milliseconds(300)}).status()));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
}

TEST_F(HttpClientTest, UsesTheProxyOfItsOptions) {
  TestServer proxy([](Exchange& exchange) { exchange.Reply(200, exchange.target()); });
  HttpOptions options = Options();
  options.proxy = proxy.address();
  client_ = *HttpClient::Create(options);
  const auto response = Do({.url = "http://cluster.example/x"});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->body, "http://cluster.example/x");
}

TEST_F(HttpClientTest, RetriesATruncatedResponse) {
  std::atomic<int> count = 0;
  const std::string content(300000, 'x');
  TestServer server([&](Exchange& exchange) {
    if (count++ < 2) {
      exchange.Send("HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n");
      exchange.Send(content.substr(0, 100000));
      return exchange.Cut();
    }
    exchange.Reply(200, content);
  });
  StringSink sink;
  const auto response = Do({.url = server.address(), .sink = &sink});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(sink.content, content);
  EXPECT_EQ(sink.rewinds, 2);
}

TEST_F(HttpClientTest, AlwaysTruncatedResponseIsUnavailable) {
  TestServer server([](Exchange& exchange) {
    exchange.Send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
    exchange.Cut();
  });
  const auto response = Do({.url = server.address() + "/?token=hunter2"});
  EXPECT_TRUE(absl::IsUnavailable(response.status())) << response.status();
  EXPECT_THAT(response.status().message(), HasSubstr("tried 6 times"));
  EXPECT_THAT(response.status().message(), Not(HasSubstr("hunter2")));
}

TEST_F(HttpClientTest, ResendsAnInterruptedRequest) {
  for (const bool streamed : {false, true}) {
    std::atomic<int> count = 0;
    const std::string content(3 << 20, 'x');
    TestServer server([&](Exchange& exchange) {
      if (count++ < 2) {
        (void)exchange.Body(100000);
        return exchange.Cut();
      }
      exchange.Reply(200, absl::StrCat(exchange.Body() == content));
    });
    StringSource source(content);
    Request request{.method = "PUT", .url = server.address()};
    streamed ? static_cast<void>(request.source = &source)
             : static_cast<void>(request.body = content);
    const auto response = Do(request);
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->body, "1");
  }
}

TEST_F(HttpClientTest, SourceOfUnknownSizeIsChunked) {
  TestServer server([](Exchange& exchange) {
    const std::string coding = exchange.header("transfer-encoding");
    exchange.Reply(200, coding);
    exchange.Cut();
  });
  StringSource source("abc", /*sized=*/false);
  const auto response = Do({.method = "PUT", .url = server.address(), .source = &source});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->body, "chunked");
}

TEST_F(HttpClientTest, StallTimeoutEndsAnAttempt) {
  std::atomic<int> count = 0;
  TestServer server([&](Exchange& exchange) {
    if (count++ > 0) return exchange.Reply(200, "awake");
    exchange.Send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
    exchange.Stall();
  });
  const auto response = Do({.url = server.address()});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->body, "awake");
}

TEST_F(HttpClientTest, TimeoutLimitsOneAttempt) {
  TestServer server([](Exchange& exchange) { exchange.Stall(); });
  const absl::Time begin = absl::Now();
  const auto response = Do({.url = server.address(), .timeout = absl::Milliseconds(50)});
  EXPECT_TRUE(absl::IsUnavailable(response.status())) << response.status();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(20));
}

TEST_F(HttpClientTest, ConnectionRefusedIsUnavailable) {
  std::string address;
  {
    const TestServer server([](Exchange&) {});
    address = server.address();
  }
  const auto response = Do({.url = address});
  EXPECT_TRUE(absl::IsUnavailable(response.status())) << response.status();
  EXPECT_THAT(response.status().message(), HasSubstr("connect"));
  EXPECT_THAT(waits_, SizeIs(5));
}

TEST_F(HttpClientTest, FollowsRedirectsOnDemand) {
  TestServer server([](Exchange& exchange) {
    if (exchange.target() == "/end")
      return exchange.Reply(200, exchange.method() + exchange.Body());
    exchange.Reply(307, "elsewhere",
                   {{"Location", exchange.target() == "/loop" ? "/loop" : "/end"}});
  });
  const auto stays = Do({.url = server.address()});
  ASSERT_TRUE(stays.ok()) << stays.status();
  EXPECT_EQ(stays->status, 307);
  EXPECT_EQ(stays->Header("location"), "/end");
  const auto follows = Do({.url = server.address(), .max_redirects = 2});
  ASSERT_TRUE(follows.ok()) << follows.status();
  EXPECT_EQ(follows->body, "GET");
  const auto sends =
      Do({.method = "PUT", .url = server.address(), .body = "x", .max_redirects = 2});
  ASSERT_TRUE(sends.ok()) << sends.status();
  EXPECT_EQ(sends->body, "PUTx");
  EXPECT_FALSE(Do({.url = server.address() + "/loop", .max_redirects = 2}).ok());
}

TEST_F(HttpClientTest, ResponseSizeAndSinkErrors) {
  TestServer server([](Exchange& exchange) { exchange.Reply(200, std::string(1000, 'x')); });
  EXPECT_TRUE(
      absl::IsOutOfRange(Do({.url = server.address(), .max_response_bytes = 999}).status()));
  EXPECT_TRUE(Do({.url = server.address(), .max_response_bytes = 1000}).ok());
  StringSink sink;
  sink.limit = 10;
  EXPECT_EQ(Do({.url = server.address(), .sink = &sink}).status().message(), "sink full");
  const auto stopped =
      Do({.url = server.address(), .progress = [](int64_t, int64_t) { return false; }});
  EXPECT_TRUE(absl::IsCancelled(stopped.status()));
  EXPECT_TRUE(waits_.empty());
}

TEST_F(HttpClientTest, EarlyRejectionIsReturned) {
  TestServer server([](Exchange& exchange) { exchange.Reply(403, "no"); });
  const auto response =
      Do({.method = "PUT", .url = server.address(), .body = std::string(8 << 20, 'x')});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 403);
  EXPECT_EQ(response->body, "no");
}

TEST_F(HttpClientTest, SignaturesNameTheKeyAndHideTheSecret) {
  std::string authorization;
  TestServer server([&](Exchange& exchange) {
    authorization = exchange.header("authorization");
    exchange.Reply(200);
  });
  ASSERT_TRUE(Do({.url = server.address() + "/b?a=1",
                  .headers = {{"x-amz-content-sha256", "UNSIGNED-PAYLOAD"}},
                  .signature = AwsSignature{"eu-west-1", "s3", "AKID", "hunter2"}})
                  .ok());
  EXPECT_THAT(authorization, HasSubstr("AWS4-HMAC-SHA256 Credential=AKID/"));
  EXPECT_THAT(authorization, HasSubstr("/eu-west-1/s3/aws4_request"));
  EXPECT_THAT(authorization, Not(HasSubstr("hunter2")));
}

TEST_F(HttpClientTest, InvalidUrlsAreRejected) {
  EXPECT_TRUE(absl::IsInvalidArgument(Do({.url = "ftp://127.0.0.1/x"}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Do({.url = "http://["}).status()));
}

TEST(HttpOptionsTest, AuthoritiesFromTheEnvironment) {
  ::unsetenv("CURL_CA_BUNDLE");
  ::setenv("SSL_CERT_FILE", "/a", 1);
  EXPECT_EQ(HttpOptions::FromEnvironment().ca_file, "/a");
  ::setenv("CURL_CA_BUNDLE", "/b", 1);
  EXPECT_EQ(HttpOptions::FromEnvironment().ca_file, "/b");
  ::unsetenv("SSL_CERT_FILE");
  ::unsetenv("CURL_CA_BUNDLE");
}

}  // namespace
}  // namespace muster::net
