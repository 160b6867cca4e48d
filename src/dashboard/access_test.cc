#include "dashboard/access.h"

#include "absl/strings/match.h"
#include "base/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::dashboard {
namespace {

using testing::HasSubstr;

class AccessTest : public testing::Test {
 protected:
  Request Get(const std::string& cookie) const {
    return {.method = "GET",
            .path = "/api/jobs",
            .headers = {{"host", "127.0.0.1:8000"}, {"cookie", cookie}}};
  }
  std::string LoggedIn() {
    const auto cookie = access_.Redeem(access_.NewToken());
    EXPECT_TRUE(cookie.ok()) << cookie.status();
    return cookie->substr(0, cookie->find(';'));
  }

  Access access_{{.hosts = {"127.0.0.1:8000", "localhost:8000"}, .password = "correct horse"}};
};

TEST_F(AccessTest, ATokenWorksOnce) {
  const std::string token = access_.NewToken();
  EXPECT_GE(token.size(), 40U);
  EXPECT_FALSE(access_.Redeem("").ok());
  EXPECT_FALSE(access_.Redeem(token + "x").ok());
  const auto cookie = access_.Redeem(token);
  ASSERT_TRUE(cookie.ok()) << cookie.status();
  EXPECT_THAT(*cookie, HasSubstr("; HttpOnly; SameSite=Strict"));
  EXPECT_EQ(access_.Redeem(token).status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(access_.Redeem("").status().code(), absl::StatusCode::kUnauthenticated);
}

TEST_F(AccessTest, ANewTokenReplacesTheOldOne) {
  const std::string old = access_.NewToken();
  const std::string token = access_.NewToken();
  EXPECT_FALSE(access_.Redeem(old).ok());
  EXPECT_TRUE(access_.Redeem(token).ok());
}

TEST_F(AccessTest, OnlyItsCookieIsASession) {
  const std::string cookie = LoggedIn();
  EXPECT_TRUE(access_.Check(Get(cookie)).ok());
  EXPECT_TRUE(access_.Check(Get("a=b; " + cookie + "; c=d")).ok());
  for (const std::string& other : {std::string(), std::string("muster_session="),
                                   cookie.substr(0, cookie.size() - 1), "x" + cookie}) {
    EXPECT_EQ(access_.Check(Get(other)).code(), absl::StatusCode::kUnauthenticated) << other;
  }
}

TEST_F(AccessTest, ChangesNeedTheCsrfTokenAndJson) {
  Request post = Get(LoggedIn());
  const std::string csrf = *access_.SessionOf(post);
  post.method = "POST";
  post.headers["content-type"] = "application/json";
  EXPECT_EQ(access_.Check(post).code(), absl::StatusCode::kPermissionDenied);
  post.headers["x-muster-csrf"] = csrf + "x";
  EXPECT_EQ(access_.Check(post).code(), absl::StatusCode::kPermissionDenied);
  post.headers["x-muster-csrf"] = csrf;
  EXPECT_TRUE(access_.Check(post).ok());
  post.headers["content-type"] = "text/plain";
  EXPECT_EQ(access_.Check(post).code(), absl::StatusCode::kInvalidArgument);
  // The token of another session does not fit.
  post.headers["content-type"] = "application/json";
  post.headers["cookie"] = LoggedIn();
  EXPECT_EQ(access_.Check(post).code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(AccessTest, RefusesOtherHostsAndOtherSites) {
  Request request = Get("");
  EXPECT_TRUE(access_.CheckOrigin(request).ok());
  request.headers["host"] = "LOCALHOST:8000";
  EXPECT_TRUE(access_.CheckOrigin(request).ok());
  for (const char* host :
       {"", "evil.example:8000", "127.0.0.1", "127.0.0.1:80", "localhost:8000.x"}) {
    request.headers["host"] = host;
    EXPECT_EQ(access_.CheckOrigin(request).code(), absl::StatusCode::kPermissionDenied) << host;
  }
  request.headers["host"] = "localhost:8000";
  request.method = "POST";
  EXPECT_TRUE(access_.CheckOrigin(request).ok());
  request.headers["origin"] = "http://localhost:8000";
  request.headers["sec-fetch-site"] = "same-origin";
  EXPECT_TRUE(access_.CheckOrigin(request).ok());
  request.headers["origin"] = "http://127.0.0.1:9999";
  EXPECT_FALSE(access_.CheckOrigin(request).ok());
  request.headers["origin"] = "null";
  EXPECT_FALSE(access_.CheckOrigin(request).ok());
  request.headers["origin"] = "http://localhost:8000";
  request.headers["sec-fetch-site"] = "same-site";  // another port of this machine
  EXPECT_FALSE(access_.CheckOrigin(request).ok());
}

TEST(AccessTimeTest, SessionsAndLocksEnd) {
  base::FakeClock clock;
  Access access({.hosts = {"h"}, .password = "secret", .clock = &clock});
  const auto cookie = access.LogIn("secret");
  ASSERT_TRUE(cookie.ok());
  const Request request{
      .method = "GET",
      .headers = {{"host", "h"}, {"cookie", cookie->substr(0, cookie->find(';'))}}};
  clock.Advance(absl::Hours(24 * 6));
  EXPECT_TRUE(access.Check(request).ok());
  clock.Advance(absl::Hours(24 * 6));
  EXPECT_TRUE(access.Check(request).ok());
  clock.Advance(absl::Hours(24 * 8));
  EXPECT_FALSE(access.Check(request).ok());

  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(access.LogIn("guess").status().code(), absl::StatusCode::kUnauthenticated);
  }
  EXPECT_EQ(access.LogIn("secret").status().code(), absl::StatusCode::kResourceExhausted);
  clock.Advance(absl::Seconds(31));
  EXPECT_TRUE(access.LogIn("secret").ok());
}

TEST(AccessTimeTest, WithoutAPasswordNobodyLogsIn) {
  Access access({.hosts = {"h"}});
  EXPECT_FALSE(access.LogIn("").ok());
}

}  // namespace
}  // namespace muster::dashboard
