#include "storage/s3/credentials.h"

#include <atomic>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/testing/server.h"
#include "storage/s3/client.h"
#include "storage/s3/profile.h"
#include "storage/testing/environment.h"

namespace muster::storage {
namespace {

using testing::HasSubstr;
using testing::Not;

class CredentialsTest : public testing::Test {
 protected:
  CredentialsTest() {
    ForgetProxies();
    variables_["HOME"] = home_.path();
    variables_["AWS_EC2_METADATA_DISABLED"] = "true";
  }

  base::Variables Environment() { return VariablesOf(variables_); }
  absl::StatusOr<AwsCredentials> Get() { return AwsCredentialChain(Environment()).Get(); }
  void WriteFile(const std::string& name, const std::string& text) {
    const std::string folder = base::JoinPath(home_.path(), ".aws");
    ASSERT_TRUE(base::MakeDirectories(folder).ok());
    ASSERT_TRUE(base::ReplaceFile(base::JoinPath(folder, name), text).ok());
  }

  const base::TempDir home_;
  std::map<std::string, std::string> variables_;
};

TEST_F(CredentialsTest, TheEnvironmentTakesPrecedence) {
  WriteFile("credentials", "[default]\naws_access_key_id=FILE\naws_secret_access_key=x\n");
  variables_["AWS_ACCESS_KEY_ID"] = "ENV";
  EXPECT_THAT(Get().status().message(), HasSubstr("AWS_SECRET_ACCESS_KEY is not set"));
  variables_["AWS_SECRET_ACCESS_KEY"] = "secret";
  variables_["AWS_SESSION_TOKEN"] = "token";
  const auto found = Get();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->access_key, "ENV");
  EXPECT_EQ(found->secret_key, "secret");
  EXPECT_EQ(found->session_token, "token");
}

TEST_F(CredentialsTest, Profiles) {
  WriteFile("credentials",
            "# mine\n[default]\naws_access_key_id = ONE\naws_secret_access_key = s=1 # comment\n"
            "[other]\r\naws_access_key_id=TWO\r\naws_secret_access_key=s2\r\n");
  WriteFile("config",
            "[default]\nregion = eu-west-1\ns3 =\n  addressing_style = path\n"
            "[profile other]\nregion = eu-north-1\nendpoint_url = http://localhost:1/\n"
            "[profile role]\nrole_arn = arn:x\n");
  EXPECT_EQ(Get()->access_key, "ONE");
  EXPECT_EQ(Get()->secret_key, "s=1");
  EXPECT_EQ(S3Options::FromVariables(Environment())->region, "eu-west-1");
  variables_["AWS_PROFILE"] = "other";
  EXPECT_EQ(Get()->access_key, "TWO");
  EXPECT_EQ(Get()->secret_key, "s2");
  EXPECT_EQ(S3Options::FromVariables(Environment())->region, "eu-north-1");
  EXPECT_EQ(S3Options::FromVariables(Environment())->endpoint, "http://localhost:1");
  variables_["AWS_REGION"] = "us-west-2";
  EXPECT_EQ(S3Options::FromVariables(Environment())->region, "us-west-2");
  variables_["AWS_PROFILE"] = "role";
  EXPECT_THAT(Get().status().message(), HasSubstr("export-credentials"));
  variables_["AWS_PROFILE"] = "none";
  EXPECT_THAT(Get().status().message(), HasSubstr("'none'"));
}

TEST_F(CredentialsTest, MissingCredentialsAreExplained) {
  const auto found = Get();
  EXPECT_TRUE(absl::IsUnauthenticated(found.status()));
  EXPECT_THAT(found.status().message(), HasSubstr("AWS_ACCESS_KEY_ID"));
}

TEST_F(CredentialsTest, AnEndpointNeedsAScheme) {
  variables_["AWS_ENDPOINT_URL"] = "localhost:9000";
  EXPECT_THAT(S3Options::FromVariables(Environment()).status().message(), HasSubstr("http://"));
}

TEST_F(CredentialsTest, SecretsInvalidInAHeaderAreRejectedAndNotShown) {
  variables_["AWS_ACCESS_KEY_ID"] = "key";
  variables_["AWS_SECRET_ACCESS_KEY"] = "hunter2\r\nX-Evil: 1";
  const auto found = Get();
  EXPECT_TRUE(absl::IsInvalidArgument(found.status()));
  EXPECT_THAT(found.status().message(), Not(HasSubstr("hunter2")));
}

constexpr char kAnswer[] = R"({"Code":"Success","AccessKeyId":"$0","SecretAccessKey":"s",
    "Token":"t","Expiration":"$1"})";

TEST_F(CredentialsTest, InstanceCredentialsAreRefreshedBeforeTheyExpire) {
  std::atomic<int> given = 0;
  base::FakeClock clock;
  net::TestServer server([&](net::Exchange& exchange) {
    if (exchange.method() == "PUT") return exchange.Reply(200, "session");
    if (exchange.header("x-aws-ec2-metadata-token") != "session") return exchange.Reply(401);
    if (absl::EndsWith(exchange.target(), "/")) return exchange.Reply(200, "my-role\n");
    const absl::Time expires = clock.Now() + absl::Hours(1);
    exchange.Reply(
        200, absl::Substitute(kAnswer, absl::StrCat("KEY", ++given),
                              absl::FormatTime(absl::RFC3339_sec, expires, absl::UTCTimeZone())));
  });
  variables_.erase("AWS_EC2_METADATA_DISABLED");
  variables_["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = server.address();
  AwsCredentialChain chain(Environment(), clock);
  ASSERT_TRUE(chain.Get().ok()) << chain.Get().status();
  EXPECT_EQ(chain.Get()->access_key, "KEY1");
  EXPECT_EQ(chain.Get()->session_token, "t");
  clock.Advance(absl::Minutes(56));
  EXPECT_EQ(chain.Get()->access_key, "KEY2");
  chain.Forget(AwsCredentials{.access_key = "KEY1"});
  EXPECT_EQ(chain.Get()->access_key, "KEY2");
  chain.Forget(*chain.Get());
  EXPECT_EQ(chain.Get()->access_key, "KEY3");
}

TEST_F(CredentialsTest, UsesTheContainersAgent) {
  net::TestServer server([](net::Exchange& exchange) {
    if (exchange.header("authorization") != "pass") return exchange.Reply(401);
    exchange.Reply(200, absl::Substitute(kAnswer, "POD", "2030-01-01T00:00:00Z"));
  });
  variables_["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = server.address() + "/v1";
  EXPECT_TRUE(absl::IsUnauthenticated(Get().status()));
  const std::string file = base::JoinPath(home_.path(), "token");
  ASSERT_TRUE(base::ReplaceFile(file, "pass\n").ok());
  variables_["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = file;
  ASSERT_TRUE(Get().ok()) << Get().status();
  EXPECT_EQ(Get()->access_key, "POD");
}

}  // namespace
}  // namespace muster::storage
