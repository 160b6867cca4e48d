#include "storage/gs/credentials.h"

#include <filesystem>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/testing/server.h"
#include "storage/gs/file_system.h"
#include "storage/testing/environment.h"
#include "storage/testing/gs_server.h"

namespace muster::storage {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

constexpr char kVariable[] = "GOOGLE_APPLICATION_CREDENTIALS";

class GoogleCredentialsTest : public testing::Test {
 protected:
  GoogleCredentialsTest() {
    ForgetProxies();
    net::HttpOptions options;
    options.sleep = [](absl::Duration) {};
    http_ = *net::HttpClient::Create(options);
    variables_["HOME"] = home_.path();
    variables_["NO_GCE_CHECK"] = "true";
  }

  // Returns false, and skips the test, if the server cannot be started.
  bool Start(const Json& options = {{"auth", true}}) {
    server_ = GsServer::Start(options);
    return server_ != nullptr &&
           std::filesystem::exists(absl::StrCat(MUSTER_NPM, "/node_modules/jose"));
  }
  std::string PutFile(const std::string& name, const std::string& text) {
    const std::string path = base::JoinPath(home_.path(), name);
    EXPECT_TRUE(base::MakeDirectories(std::filesystem::path(path).parent_path()).ok());
    EXPECT_TRUE(base::ReplaceFile(path, text).ok());
    return path;
  }
  // Uses credentials from the file that the variable names.
  void Name(const Json& file) { variables_[kVariable] = PutFile("key.json", file.dump()); }

  GoogleCredentialChain Chain() { return {VariablesOf(variables_), *http_, clock_}; }
  absl::StatusOr<GoogleToken> Get() { return Chain().Get(); }
  // Returns the error message of Get() after checking that it contains no secret.
  std::string Refused() {
    const auto token = Get();
    EXPECT_FALSE(token.ok());
    EXPECT_TRUE(absl::IsUnauthenticated(token.status())) << token.status();
    ExpectNoSecret(token.status().message());
    return std::string(token.status().message());
  }
  void ExpectNoSecret(absl::string_view said) {
    EXPECT_THAT(said, Not(HasSubstr("hunter2")));
    EXPECT_THAT(said, Not(HasSubstr("PRIVATE")));
    EXPECT_THAT(said, Not(HasSubstr("eyJ")));  // the beginning of every assertion
  }
  std::unique_ptr<GsFileSystem> Files() {
    variables_["CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE"] = server_->address() + "/storage/v1/";
    auto files = GsFileSystem::FromVariables(VariablesOf(variables_));
    EXPECT_TRUE(files.ok()) << files.status();
    return *std::move(files);
  }

  const base::TempDir home_;
  base::FakeClock clock_{absl::Now()};
  std::map<std::string, std::string> variables_;
  std::unique_ptr<net::HttpClient> http_;
  std::unique_ptr<GsServer> server_;
};

#define START_OR_SKIP(...) \
  if (!Start(__VA_ARGS__)) GTEST_SKIP() << "no node, or no jose in " << MUSTER_NPM

TEST_F(GoogleCredentialsTest, JoseAcceptsTheServiceAccountsSignature) {
  START_OR_SKIP();
  Name(server_->Test("service_account"));
  const auto token = Get();
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_EQ(token->expires, clock_.Now() + absl::Hours(1));
  const auto files = Files();
  const Url url{"gs", "bucket", "x"};
  ASSERT_EQ(WriteWhole(*files, url, "content"), absl::OkStatus());
  EXPECT_EQ(*ReadWhole(*files, url), "content");
  EXPECT_EQ(server_->Test("state")["tokens"], 2);  // Get()'s, and one for all requests
}

TEST_F(GoogleCredentialsTest, AUsersRefreshToken) {
  START_OR_SKIP();
  const Json user = server_->Test("authorized_user");
  PutFile(".config/gcloud/application_default_credentials.json", user.dump());
  ASSERT_TRUE(Get().ok()) << Get().status();
  for (const auto& [member, advice] :
       {std::pair("refresh_token", "gcloud auth application-default login"),
        std::pair("client_secret", "invalid_client")}) {
    Json wrong = user;
    wrong[member] = "hunter2-wrong";
    Name(wrong);
    EXPECT_THAT(Refused(), HasSubstr(advice));
    wrong.erase(member);
    Name(wrong);
    EXPECT_THAT(Refused(), HasSubstr(absl::StrCat("has no ", member)));
  }
}

TEST_F(GoogleCredentialsTest, TheVariableTakesPrecedenceOverGcloudsFile) {
  START_OR_SKIP();
  const std::string folder = base::JoinPath(home_.path(), "elsewhere");
  PutFile("elsewhere/application_default_credentials.json", "{}");
  variables_["CLOUDSDK_CONFIG"] = folder;
  EXPECT_THAT(Refused(), AllOf(HasSubstr(folder), HasSubstr("service_account")));
  Name(server_->Test("authorized_user"));
  EXPECT_TRUE(Get().ok());
  variables_[kVariable] = "/no/such/file";
  EXPECT_THAT(Refused(), AllOf(HasSubstr(kVariable), HasSubstr("/no/such/file")));
}

TEST_F(GoogleCredentialsTest, TheProjectOfTheVariableElseOfTheFile) {
  EXPECT_EQ(GoogleProject(VariablesOf(variables_)), "");
  PutFile(".config/gcloud/application_default_credentials.json", R"({"quota_project_id": "q"})");
  EXPECT_EQ(GoogleProject(VariablesOf(variables_)), "q");
  Name({{"project_id", "of-the-key"}});
  EXPECT_EQ(GoogleProject(VariablesOf(variables_)), "of-the-key");
  PutFile("key.json", "damaged");
  EXPECT_EQ(GoogleProject(VariablesOf(variables_)), "");
  variables_["CLOUDSDK_CORE_PROJECT"] = "gclouds";
  EXPECT_EQ(GoogleProject(VariablesOf(variables_)), "gclouds");
  variables_["GOOGLE_CLOUD_PROJECT"] = "first";
  EXPECT_EQ(GoogleProject(VariablesOf(variables_)), "first");
}

TEST_F(GoogleCredentialsTest, TheMetadataServer) {
  START_OR_SKIP();
  variables_.erase("NO_GCE_CHECK");
  variables_["GCE_METADATA_HOST"] = server_->address().substr(7);
  ASSERT_TRUE(Get().ok()) << Get().status();
  const net::TestServer other([](net::Exchange& exchange) { exchange.Reply(200, "{}"); });
  variables_["GCE_METADATA_HOST"] = other.address().substr(7);
  EXPECT_THAT(Refused(), HasSubstr("is not a metadata server"));
}

TEST_F(GoogleCredentialsTest, MissingCredentialsAreExplained) {
  EXPECT_THAT(Refused(), AllOf(HasSubstr(kVariable), HasSubstr("gcloud auth"),
                               HasSubstr("STORAGE_EMULATOR_HOST")));
}

TEST_F(GoogleCredentialsTest, ATokenIsReplacedBeforeItExpires) {
  START_OR_SKIP();
  Name(server_->Test("service_account"));
  GoogleCredentialChain chain = Chain();
  const GoogleToken first = *chain.Get();
  clock_.Advance(absl::Minutes(55));
  EXPECT_EQ(*chain.Get(), first);
  // A token is used until it expires if no new one can be fetched.
  clock_.Advance(absl::Minutes(2));
  server_->Fail({{"kind", "status"}, {"status", 503}, {"match", "/token"}, {"times", 1000}});
  EXPECT_EQ(*chain.Get(), first);
  clock_.Advance(absl::Minutes(4));
  EXPECT_TRUE(absl::IsUnavailable(chain.Get().status())) << chain.Get().status();
}

TEST_F(GoogleCredentialsTest, ARejectedTokenIsReplacedOnce) {
  START_OR_SKIP();
  Name(server_->Test("authorized_user"));
  const auto files = Files();
  const Url url{"gs", "bucket", "x"};
  ASSERT_EQ(WriteWhole(*files, url, "content"), absl::OkStatus());
  (void)server_->Test("revoke");
  EXPECT_EQ(*ReadWhole(*files, url), "content");
  EXPECT_EQ(server_->Test("state")["tokens"], 2);
  server_->Fail({{"kind", "status"}, {"status", 401}, {"match", "/storage/"}, {"times", 1000}});
  const absl::Status status = files->Stat(url).status();
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("gcloud auth"));
  ExpectNoSecret(status.message());
  EXPECT_EQ(server_->Test("state")["tokens"], 3);
}

TEST_F(GoogleCredentialsTest, RejectsKeysOfAnotherAccountAndWrongClocks) {
  START_OR_SKIP();
  const Json right = server_->Test("service_account");
  const auto other = GsServer::Start(Json::object());
  Json wrong = right;
  wrong["private_key"] = other->Test("service_account")["private_key"];
  Name(wrong);
  EXPECT_THAT(Refused(), AllOf(HasSubstr("create a new key"), HasSubstr("Invalid JWT Signature")));
  for (const absl::Duration off : {-absl::Hours(3), absl::Hours(3)}) {
    Name(right);
    clock_.Advance(off - (clock_.Now() - absl::Now()));
    EXPECT_THAT(Refused(), HasSubstr("clock"));
  }
}

TEST_F(GoogleCredentialsTest, InvalidFilesAreRejected) {
  const Json account = {{"type", "service_account"},
                        {"client_email", "a@b"},
                        {"private_key", "-----BEGIN PRIVATE KEY-----\nhunter2\n"},
                        {"token_uri", "http://127.0.0.1:1/"}};
  Name(account);
  EXPECT_THAT(Refused(), HasSubstr("not an RSA key"));
  Json open = {{"type", "authorized_user"},
               {"client_id", "a"},
               {"client_secret", "hunter2"},
               {"refresh_token", "hunter2"},
               {"token_uri", "http://evil.example/"}};
  Name(open);
  EXPECT_THAT(Refused(), HasSubstr("https://"));
  for (const char* text : {"", "hunter2", "[\"hunter2\"]", R"({"type":"external_account"})",
                           R"({"type":["service_account"]})", R"({"type":"service_account"})"}) {
    variables_[kVariable] = PutFile("key.json", text);
    EXPECT_THAT(Refused(), HasSubstr("key.json: "));
  }
}

TEST_F(GoogleCredentialsTest, InvalidResponsesAreRejected) {
  for (const char* text :
       {"", "{}", R"({"access_token":"hunter2"})", R"({"access_token":1,"expires_in":1})",
        R"({"access_token":"hunter2\r\nX-Evil: 1","expires_in":3600})",
        R"({"access_token":"hunter2","expires_in":"soon"})"}) {
    const net::TestServer server([&](net::Exchange& exchange) { exchange.Reply(200, text); });
    Name({{"type", "authorized_user"},
          {"client_id", "a"},
          {"client_secret", "b"},
          {"refresh_token", "c"},
          {"token_uri", server.address()}});
    EXPECT_THAT(Refused(), HasSubstr("no usable token"));
  }
}

TEST(GsOptionsTest, FromVariables) {
  const auto options = [](const std::string& name, const std::string& value) {
    return GsOptions::FromVariables(VariablesOf({{name, value}}));
  };
  constexpr char kEmulator[] = "STORAGE_EMULATOR_HOST";
  constexpr char kOther[] = "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE";
  EXPECT_EQ(options("", "")->endpoint, "https://storage.googleapis.com");
  EXPECT_FALSE(options("", "")->emulator);
  EXPECT_EQ(options(kEmulator, "localhost:9")->endpoint, "http://localhost:9");
  EXPECT_EQ(options(kEmulator, "https://x.example/")->endpoint, "https://x.example");
  EXPECT_TRUE(options(kEmulator, "localhost:9")->emulator);
  EXPECT_FALSE(options(kEmulator, "ftp://x").ok());
  EXPECT_EQ(options(kOther, "https://x.example/storage/v1/")->endpoint, "https://x.example");
  EXPECT_FALSE(options(kOther, "https://x.example")->emulator);
  EXPECT_FALSE(options(kOther, "http://x.example").ok());
}

}  // namespace
}  // namespace muster::storage
