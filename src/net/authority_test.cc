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
  std::string Complaint(const Certificate& server, const std::string& authority, absl::Time when) {
    return std::string(CheckServer(server, authority, kHost, when).message());
  }

  const absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  const CertificateRequest request_ = {
      .name = "test", .from = now_ - absl::Hours(1), .until = now_ + absl::Hours(48)};
  const Authority authority_ = Authority::Create(request_).value();
};

TEST_F(AuthorityTest, WhoTrustsItAcceptsWhatItIssued) {
  const Certificate server = Issue("DNS:other.svc,DNS:operator.muster.svc");
  EXPECT_EQ(CheckServer(server, authority_.certificate(), kHost, now_), absl::OkStatus());
}

TEST_F(AuthorityTest, NobodyElseAcceptsIt) {
  const Authority other = Authority::Create(request_).value();
  const Certificate server = Issue("DNS:operator.muster.svc");
  EXPECT_NE(Complaint(server, other.certificate(), now_), "");
  EXPECT_THAT(Complaint(Issue("DNS:other.svc"), authority_.certificate(), now_),
              HasSubstr("ostname mismatch"));
  EXPECT_NE(Complaint(Issue(""), authority_.certificate(), now_), "");
}

TEST_F(AuthorityTest, ItEnds) {
  const Certificate server = Issue("DNS:operator.muster.svc");
  const std::string& authority = authority_.certificate();
  EXPECT_THAT(Complaint(server, authority, now_ + absl::Hours(25)), HasSubstr("expired"));
  EXPECT_THAT(Complaint(server, authority, now_ - absl::Hours(2)), HasSubstr("not yet valid"));
}

TEST_F(AuthorityTest, EveryKeyAndSerialIsAnother) {
  const Certificate first = Issue("DNS:operator.muster.svc");
  const Certificate second = Issue("DNS:operator.muster.svc");
  EXPECT_NE(first.key, second.key);
  EXPECT_EQ(Complaint({.certificate = first.certificate, .key = second.key},
                      authority_.certificate(), now_),
            "the key is another certificate's");
}

TEST_F(AuthorityTest, WhatIsNoCertificateIsRefused) {
  const Certificate server = Issue("DNS:operator.muster.svc");
  for (const std::string& text : {std::string(), std::string("junk"), server.key,
                                  server.certificate.substr(0, server.certificate.size() / 2)}) {
    EXPECT_EQ(Complaint({.certificate = text, .key = server.key}, authority_.certificate(), now_),
              "it is no certificate");
    EXPECT_EQ(Complaint(server, text, now_), "it is no certificate");
  }
  EXPECT_EQ(
      Complaint({.certificate = server.certificate, .key = "x"}, authority_.certificate(), now_),
      "it is no certificate");
}

TEST_F(AuthorityTest, NamesThatDoNotFit) {
  EXPECT_EQ(Authority::Create({.name = std::string(65, 'a')}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(authority_.Issue({.name = std::string(65, 'a')}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(authority_.Issue({.name = "a", .hosts = "IP:1.2.3"}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace muster::net
