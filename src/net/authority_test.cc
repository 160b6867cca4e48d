#include "net/authority.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::net {
namespace {

using ::testing::HasSubstr;

constexpr char kHost[] = "operator.muster.svc";

class AuthorityTest : public testing::Test {
 protected:
  Certificate Issue(const std::string& hosts) {
    auto issued = authority_.Issue({.name = "operator",
                                    .hosts = hosts,
                                    .from = now_ - absl::Hours(1),
                                    .until = now_ + absl::Hours(24)});
    EXPECT_TRUE(issued.ok()) << issued.status();
    return issued.value_or(Certificate{});
  }
  std::string ErrorOf(const Certificate& server, const std::string& authority, absl::Time when) {
    return std::string(CheckServer(server, authority, kHost, when).message());
  }

  const absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  const CertificateRequest request_ = {
      .name = "test", .from = now_ - absl::Hours(1), .until = now_ + absl::Hours(48)};
  const Authority authority_ = Authority::Create(request_).value();
};

TEST_F(AuthorityTest, IssuedCertificatesAreAccepted) {
  const Certificate server = Issue("DNS:other.svc,DNS:operator.muster.svc");
  EXPECT_EQ(CheckServer(server, authority_.certificate(), kHost, now_), absl::OkStatus());
}

TEST_F(AuthorityTest, OtherAuthoritiesAndNamesAreRejected) {
  const Authority other = Authority::Create(request_).value();
  const Certificate server = Issue("DNS:operator.muster.svc");
  EXPECT_NE(ErrorOf(server, other.certificate(), now_), "");
  EXPECT_THAT(ErrorOf(Issue("DNS:other.svc"), authority_.certificate(), now_),
              HasSubstr("ostname mismatch"));
  EXPECT_NE(ErrorOf(Issue(""), authority_.certificate(), now_), "");
}

TEST_F(AuthorityTest, CertificatesExpire) {
  const Certificate server = Issue("DNS:operator.muster.svc");
  const std::string& authority = authority_.certificate();
  EXPECT_THAT(ErrorOf(server, authority, now_ + absl::Hours(25)), HasSubstr("expired"));
  EXPECT_THAT(ErrorOf(server, authority, now_ - absl::Hours(2)), HasSubstr("not yet valid"));
}

TEST_F(AuthorityTest, KeysAndSerialNumbersAreUnique) {
  const Certificate first = Issue("DNS:operator.muster.svc");
  const Certificate second = Issue("DNS:operator.muster.svc");
  EXPECT_NE(first.key, second.key);
  EXPECT_EQ(ErrorOf({.certificate = first.certificate, .key = second.key}, authority_.certificate(),
                    now_),
            "the key does not belong to the certificate");
}

TEST_F(AuthorityTest, InvalidPemIsRejected) {
  const Certificate server = Issue("DNS:operator.muster.svc");
  for (const std::string& text : {std::string(), std::string("junk"), server.key,
                                  server.certificate.substr(0, server.certificate.size() / 2)}) {
    EXPECT_EQ(ErrorOf({.certificate = text, .key = server.key}, authority_.certificate(), now_),
              "not a PEM certificate and key");
    EXPECT_EQ(ErrorOf(server, text, now_), "not a PEM certificate and key");
  }
  EXPECT_EQ(
      ErrorOf({.certificate = server.certificate, .key = "x"}, authority_.certificate(), now_),
      "not a PEM certificate and key");
}

TEST_F(AuthorityTest, InvalidNamesAreRejected) {
  EXPECT_EQ(Authority::Create({.name = std::string(65, 'a')}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(authority_.Issue({.name = std::string(65, 'a')}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(authority_.Issue({.name = "a", .hosts = "IP:1.2.3"}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace muster::net
