#include "net/http.h"

#include "gtest/gtest.h"

namespace muster::net {
namespace {

TEST(HttpTest, PercentEncodesAllButTheUnreserved) {
  EXPECT_EQ(PercentEncode("aZ09-._~", false), "aZ09-._~");
  EXPECT_EQ(PercentEncode("a b/c", false), "a%20b%2Fc");
  EXPECT_EQ(PercentEncode("a b/c%+ä", true), "a%20b/c%25%2B%C3%A4");
}

TEST(HttpTest, RetryAfterIsSecondsOrADate) {
  const absl::Time now = absl::FromUnixSeconds(784111777);  // Sun, 06 Nov 1994 08:49:37 GMT
  EXPECT_EQ(ParseRetryAfter("120", now), absl::Seconds(120));
  EXPECT_EQ(ParseRetryAfter("-5", now), absl::ZeroDuration());
  EXPECT_EQ(ParseRetryAfter("Sun, 06 Nov 1994 08:50:37 GMT", now), absl::Seconds(60));
  EXPECT_EQ(ParseRetryAfter("Sun, 06 Nov 1994 08:40:37 GMT", now), absl::ZeroDuration());
  EXPECT_EQ(ParseRetryAfter("soon", now), std::nullopt);
  EXPECT_EQ(ParseRetryAfter("", now), std::nullopt);
}

TEST(HttpTest, HeaderNamesAreCaseInsensitive) {
  const Response response{.headers = {{"ETag", "x"}, {"content-length", "5"}}};
  EXPECT_EQ(response.Header("etag"), "x");
  EXPECT_EQ(response.Header("Content-Length"), "5");
  EXPECT_EQ(response.Header("Date"), "");
}

TEST(HttpTest, MapsHttpStatusesToCodes) {
  const auto code = [](int status) { return StatusOf({.status = status}).code(); };
  EXPECT_EQ(code(206), absl::StatusCode::kOk);
  EXPECT_EQ(code(404), absl::StatusCode::kNotFound);
  EXPECT_EQ(code(403), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(code(401), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(code(429), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code(503), absl::StatusCode::kUnavailable);
}

TEST(HttpTest, SecretsNeedTlsOrLoopback) {
  for (const char* url : {"https://x.example/y", "http://localhost:1/", "http://127.0.0.1",
                          "http://127.1.2.3:80/x", "http://[::1]:80/"}) {
    EXPECT_TRUE(IsSafeForSecrets(url)) << url;
  }
  for (const char* url : {"http://x.example/", "http://127.0.0.1.x.example/", "ftp://localhost", "",
                          "http://localhost@x.example/", "http://[::2]/", "http://localhost.x/"}) {
    EXPECT_FALSE(IsSafeForSecrets(url)) << url;
  }
}

}  // namespace
}  // namespace muster::net
