#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/http_client.h"
#include "net/testing/server.h"
#include "net/testing/tls_front.h"

namespace muster::net {
namespace {

using testing::HasSubstr;
using testing::Not;

class TlsTest : public testing::Test {
 protected:
  TlsTest() {
    for (const char* name : {"https_proxy", "all_proxy", "ALL_PROXY", "HTTPS_PROXY"}) {
      ::unsetenv(name);
    }
    HttpOptions options;
    options.sleep = [](absl::Duration) {};
    client_ = *HttpClient::Create(options);
  }

  void Listen(const CertificateRequest& request) {
    front_ = std::make_unique<TlsFront>(server_.address(), authority_.Issue(request),
                                        authority_.certificate());
  }
  absl::StatusOr<Response> Get(const Tls& tls) {
    return client_->Do({.url = front_->address() + "/x", .tls = &tls});
  }

  TestServer server_{[](Exchange& exchange) { exchange.Reply(200, exchange.header("host")); }};
  const TestAuthority authority_;
  std::unique_ptr<TlsFront> front_;
  std::unique_ptr<HttpClient> client_;
};

TEST_F(TlsTest, AnAuthorityAndACertificateFromMemory) {
  Listen({.name = "server", .hosts = "IP:127.0.0.1"});
  const auto nameless = Get({.authorities = authority_.certificate()});
  ASSERT_TRUE(nameless.ok()) << nameless.status();
  EXPECT_EQ(front_->client_name(), "");
  for (const char* name : {"ada", "bob"}) {  // each over a connection of its own
    const TestCertificate own = authority_.Issue({.name = name});
    const auto response = Get(
        {.authorities = authority_.certificate(), .certificate = own.certificate, .key = own.key});
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(front_->client_name(), name);
  }
}

TEST_F(TlsTest, NoOtherAuthorityIsTrusted) {
  Listen({.name = "server", .hosts = "IP:127.0.0.1"});
  const TestAuthority other;
  const auto response = Get({.authorities = other.certificate()});
  EXPECT_TRUE(absl::IsFailedPrecondition(response.status())) << response.status();
  EXPECT_THAT(response.status().message(), HasSubstr("another authority"));
  EXPECT_THAT(response.status().message(), Not(HasSubstr("CURL_CA_BUNDLE")));
  EXPECT_EQ(server_.requests(), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(client_->Do({.url = front_->address()}).status()));
}

TEST_F(TlsTest, ACertificateThatHasExpired) {
  Listen({.name = "server",
          .hosts = "IP:127.0.0.1",
          .from = absl::Now() - absl::Hours(2),
          .until = absl::Now() - absl::Hours(1)});
  const auto response = Get({.authorities = authority_.certificate()});
  EXPECT_TRUE(absl::IsFailedPrecondition(response.status())) << response.status();
  EXPECT_THAT(response.status().message(), HasSubstr("expired"));
}

TEST_F(TlsTest, ServerNameDiffersFromTheAddress) {
  Listen({.name = "server", .hosts = "DNS:api.example"});
  EXPECT_TRUE(absl::IsFailedPrecondition(Get({.authorities = authority_.certificate()}).status()));
  // A new front: it may record the names of the first client after those of the second.
  Listen({.name = "server", .hosts = "DNS:api.example"});
  const auto response =
      Get({.authorities = authority_.certificate(), .server_name = "api.example"});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(front_->server_name(), "api.example");
  EXPECT_EQ(absl::StrCat("https://", response->body), front_->address());
}

TEST_F(TlsTest, ErrorsDoNotShowAMismatchedKey) {
  Listen({.name = "server", .hosts = "IP:127.0.0.1"});
  const auto response = Get({.authorities = authority_.certificate(),
                             .certificate = authority_.Issue({.name = "ada"}).certificate,
                             .key = authority_.Issue({.name = "bob"}).key});
  EXPECT_TRUE(absl::IsInvalidArgument(response.status())) << response.status();
  EXPECT_THAT(response.status().message(), HasSubstr("client certificate"));
  EXPECT_THAT(response.status().message(), Not(HasSubstr("PRIVATE")));
}

}  // namespace
}  // namespace muster::net
