#include "k8s/credentials.h"

#include <sys/stat.h>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "k8s/error.h"
#include "k8s/testing/api_server.h"
#include "net/testing/tls_front.h"

namespace muster::k8s {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kVersion[] = "client.authentication.k8s.io/v1";

class CredentialsTest : public testing::Test {
 protected:
  CredentialsTest() { config_.origin = "context 'dev' of /config"; }

  std::string Put(const std::string& name, const std::string& text) {
    const std::string path = base::JoinPath(home_.path(), name);
    EXPECT_TRUE(base::ReplaceFile(path, text).ok());
    return path;
  }
  // Uses this shell script as the plugin. It may count its runs in $COUNT.
  void UsePlugin(const std::string& script) {
    const std::string path = Put("plugin", "#!/bin/sh\n" + script);
    ::chmod(path.c_str(), 0700);
    config_.user.exec = ExecPlugin{.api_version = kVersion, .command = path};
    config_.user.exec->env["COUNT"] = base::JoinPath(home_.path(), "count");
  }
  static std::string Print(const std::string& status) {
    return absl::StrCat("echo x >>$COUNT\ncat <<END\n{\"apiVersion\": \"", kVersion,
                        "\", \"kind\": \"ExecCredential\", \"status\": {", status, "}}\nEND\n");
  }
  size_t Runs() const {
    return base::ReadFile(base::JoinPath(home_.path(), "count")).value_or("").size() / 2;
  }
  absl::StatusOr<Credential> Get() { return Credentials(config_, clock_).Get(); }
  std::string Refused(absl::StatusCode code = absl::StatusCode::kUnauthenticated) {
    const auto credential = Get();
    EXPECT_EQ(credential.status().code(), code) << credential.status();
    EXPECT_THAT(credential.status().message(), Not(HasSubstr("hunter2")));
    return std::string(credential.status().message());
  }

  const base::TempDir home_;
  base::FakeClock clock_{absl::Now()};
  ClusterConfig config_;
};

TEST_F(CredentialsTest, TokenOrPassword) {
  EXPECT_EQ(Get()->authorization, "");
  config_.user.token.data = "t";
  EXPECT_EQ(Get()->authorization, "Bearer t");
  config_.user.token.data = "";
  config_.user.username = "ada";
  config_.user.password = "pw";
  EXPECT_EQ(Get()->authorization, "Basic " + absl::Base64Escape("ada:pw"));
}

TEST_F(CredentialsTest, ReadsATokenFileAgain) {
  config_.user.token.file = Put("token", "one\n");
  Credentials credentials(config_, clock_);
  EXPECT_EQ(credentials.Get()->authorization, "Bearer one");
  Put("token", "two\n");
  EXPECT_EQ(credentials.Get()->authorization, "Bearer one");
  clock_.Advance(absl::Minutes(2));
  EXPECT_EQ(credentials.Get()->authorization, "Bearer two");
  Put("token", "");
  clock_.Advance(absl::Minutes(2));
  EXPECT_THAT(credentials.Get().status().message(), HasSubstr("token is empty"));
  config_.user.token.file = "/nowhere/token";
  EXPECT_THAT(Refused(), AllOf(HasSubstr("/nowhere/token"), HasSubstr("context 'dev'")));
}

TEST_F(CredentialsTest, RejectsAnExpiredCertificate) {
  const net::TestAuthority authority;
  const net::TestCertificate own = authority.Issue({.name = "ada"});
  config_.user.certificate.data = own.certificate;
  config_.user.key.data = own.key;
  EXPECT_EQ(Get()->key, own.key);
  clock_.Advance(absl::Hours(24));
  EXPECT_THAT(Refused(), AllOf(HasSubstr("expired at 20"), HasSubstr("kubeadm certs renew")));
  config_.user.certificate.data = "-----BEGIN CERTIFICATE-----\nhunter2\n";
  EXPECT_THAT(Refused(), HasSubstr("not a PEM certificate"));
}

TEST_F(CredentialsTest, APluginRunsAgainWhenItsTokenHasExpired) {
  const std::string expiry =
      absl::FormatTime(absl::RFC3339_sec, clock_.Now() + absl::Hours(1), absl::UTCTimeZone());
  UsePlugin(Print(
      absl::StrCat("\"token\": \"t$(wc -l <$COUNT)\", \"expirationTimestamp\": \"", expiry, "\"")));
  Credentials credentials(config_, clock_);
  EXPECT_EQ(credentials.Get()->authorization, "Bearer t1");
  EXPECT_EQ(credentials.Get()->authorization, "Bearer t1");
  EXPECT_EQ(Runs(), 1);
  clock_.Advance(absl::Minutes(60));
  EXPECT_EQ(credentials.Get()->authorization, "Bearer t2");
}

TEST_F(CredentialsTest, PassesExecInfoToAPlugin) {
  UsePlugin(Print("\"token\": \"$(echo \"$KUBERNETES_EXEC_INFO\" | base64 -w0)\""));
  config_.server = "https://x";
  config_.authorities = "PEM";
  const auto exec_info = [&] {
    std::string text;
    EXPECT_TRUE(absl::Base64Unescape(Get()->authorization.substr(7), &text));
    return Json::parse(text);
  };
  EXPECT_EQ(exec_info()["apiVersion"], kVersion);
  EXPECT_FALSE(exec_info()["spec"].contains("cluster"));
  config_.user.exec->provide_cluster_info = true;
  config_.user.exec->cluster_config = {{"a", 1}};
  EXPECT_EQ(exec_info()["spec"]["cluster"]["server"], "https://x");
  EXPECT_EQ(exec_info()["spec"]["cluster"]["certificate-authority-data"],
            absl::Base64Escape("PEM"));
  EXPECT_EQ(exec_info()["spec"]["cluster"]["config"]["a"], 1);
}

TEST_F(CredentialsTest, APluginWithACertificate) {
  const net::TestAuthority authority;
  const net::TestCertificate own = authority.Issue({.name = "ada"});
  const Json status = {{"clientCertificateData", own.certificate}, {"clientKeyData", own.key}};
  const std::string text = status.dump();
  UsePlugin(absl::StrCat("cat <<'END'\n{\"apiVersion\": \"", kVersion,
                         "\", \"kind\": \"ExecCredential\", \"status\": ", text, "}\nEND\n"));
  const auto credential = Get();
  ASSERT_TRUE(credential.ok()) << credential.status();
  EXPECT_EQ(credential->certificate, own.certificate);
  EXPECT_EQ(credential->key, own.key);
}

TEST_F(CredentialsTest, APluginThatIsNotInstalled) {
  config_.user.exec = ExecPlugin{.api_version = kVersion,
                                 .command = "no-such-plugin",
                                 .install_hint = "Install it with: apt-get install it"};
  EXPECT_THAT(Refused(absl::StatusCode::kFailedPrecondition),
              AllOf(HasSubstr("no-such-plugin"), HasSubstr("apt-get install it")));
}

TEST_F(CredentialsTest, PluginsThatFail) {
  UsePlugin("echo hunter2; echo please sign in >&2; exit 3");
  EXPECT_THAT(Refused(), AllOf(HasSubstr("exit code 3"), HasSubstr("please sign in")));
  UsePlugin("echo hunter2");
  EXPECT_THAT(Refused(), HasSubstr("no ExecCredential"));
  UsePlugin(Print("\"clientKeyData\": \"hunter2\""));
  EXPECT_THAT(Refused(), HasSubstr("neither a token nor"));
  UsePlugin(Print("\"token\": \"hunter2\", \"expirationTimestamp\": \"soon\""));
  EXPECT_THAT(Refused(), HasSubstr("expirationTimestamp"));
  UsePlugin(Print("\"token\": \"hunter2 hunter2\""));
  EXPECT_THAT(Refused(), HasSubstr("a space"));
  UsePlugin(Print("\"token\": \"hunter2\""));
  config_.user.exec->api_version = "client.authentication.k8s.io/v1beta1";
  EXPECT_THAT(Refused(), HasSubstr("instead of"));
  UsePlugin("yes hunter2");
  EXPECT_THAT(Refused(absl::StatusCode::kDeadlineExceeded), HasSubstr("too much"));
}

TEST_F(CredentialsTest, APluginThatHangsIsKilled) {
  UsePlugin("sleep 1000 & echo $! >$COUNT; wait");
  Credentials credentials(config_, clock_, absl::Milliseconds(500));
  EXPECT_TRUE(absl::IsDeadlineExceeded(credentials.Get().status()));
  const std::string child = base::ReadFile(base::JoinPath(home_.path(), "count")).value_or("");
  int pid = 0;
  if (absl::SimpleAtoi(child, &pid)) {
    const std::string path = absl::StrCat("/proc/", pid, "/cmdline");
    const absl::Time end = absl::Now() + absl::Seconds(30);
    while (!base::ReadFile(path).value_or("").empty() && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(10));
    }
    EXPECT_EQ(base::ReadFile(path).value_or(""), "");
  }
}

TEST_F(CredentialsTest, APluginRunsAgainAfterA401) {
  ApiServer server;
  server.Put(kPods, MakePod("a"));
  server.Intercept([](net::Exchange& exchange) {
    if (exchange.header("authorization") == "Bearer t2") return false;
    Refuse(exchange, 401, "Unauthorized", "Unauthorized");
    return true;
  });
  UsePlugin(Print("\"token\": \"t$(wc -l <$COUNT)\""));
  config_.server = server.address();
  const auto client = *Client::Create(config_, {});
  const auto pod = client->Get(kPods, {"", "a"});
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(Runs(), 2);
  EXPECT_TRUE(client->Get(kPods, {"", "a"}).ok());
  EXPECT_EQ(Runs(), 2);
}

TEST_F(CredentialsTest, ARejectedTokenIsNotRetriedForever) {
  ApiServer server;
  server.Intercept([](net::Exchange& exchange) {
    Refuse(exchange, 401, "Unauthorized", "Unauthorized");
    return true;
  });
  config_.server = server.address();
  config_.user.name = "ada";
  config_.user.token.data = "hunter2";
  const auto client = *Client::Create(config_, {});
  const auto pod = client->Get(kPods, {"", "a"});
  EXPECT_TRUE(absl::IsUnauthenticated(pod.status()));
  EXPECT_THAT(pod.status().message(), AllOf(HasSubstr("user 'ada' (context 'dev' of /config)"),
                                            HasSubstr("sign in again"), Not(HasSubstr("hunter2"))));
  EXPECT_EQ(server.requests().size(), 1);
}

}  // namespace
}  // namespace muster::k8s
