#include "storage/setup.h"

#include <filesystem>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/testing/server.h"
#include "storage/testing/environment.h"
#include "storage/testing/gs_server.h"

namespace muster::storage {
namespace {

using testing::HasSubstr;

std::string Error(const std::string& code) {
  return absl::StrCat("<Error><Code>", code, "</Code></Error>");
}

base::Variables S3Variables(const net::TestServer& server) {
  ForgetProxies();
  return VariablesOf({{"AWS_ENDPOINT_URL", server.address()},
                      {"AWS_ACCESS_KEY_ID", "AKID"},
                      {"AWS_SECRET_ACCESS_KEY", "hunter2"}});
}

TEST(PlaceTest, AFolderIsMadeWithItsParents) {
  const base::TempDir folder;
  const Url url = LocalUrl(base::JoinPath(folder.path(), "a/b/"));
  EXPECT_TRUE(*MakeBucketOrFolder(url, {}, VariablesOf({})));
  EXPECT_TRUE(std::filesystem::is_directory(url.name));
  EXPECT_FALSE(*MakeBucketOrFolder(url, {}, VariablesOf({})));
  ASSERT_TRUE(base::ReplaceFile(base::JoinPath(folder.path(), "file"), "").ok());
  EXPECT_FALSE(
      MakeBucketOrFolder(LocalUrl(base::JoinPath(folder.path(), "file/x")), {}, VariablesOf({}))
          .ok());
}

TEST(PlaceTest, AnS3BucketIsMadeInItsRegion) {
  ForgetProxies();
  bool exists = false;
  std::string body;
  net::TestServer server([&](net::Exchange& exchange) {
    if (exchange.method() == "PUT") {
      body = exchange.Body();
      exists = true;
      return exchange.Reply(200);
    }
    exists ? exchange.Reply(200, "<ListBucketResult/>")
           : exchange.Reply(404, Error("NoSuchBucket"));
  });
  const Url url = *ParseUrl("s3://new/ignored");
  EXPECT_TRUE(*MakeBucketOrFolder(url, {}, S3Variables(server)));
  EXPECT_EQ(body, "");
  EXPECT_FALSE(*MakeBucketOrFolder(url, {}, S3Variables(server)));
  exists = false;
  EXPECT_TRUE(*MakeBucketOrFolder(url, {.location = "eu-west-1"}, S3Variables(server)));
  EXPECT_THAT(body, HasSubstr("<LocationConstraint>eu-west-1</LocationConstraint>"));
}

TEST(PlaceTest, RefusalsOfS3AreExplained) {
  std::string refusal;
  net::TestServer server([&](net::Exchange& exchange) {
    exchange.Reply(exchange.method() == "PUT" ? 409 : 404,
                   Error(exchange.method() == "PUT" ? refusal : "NoSuchBucket"));
  });
  refusal = "BucketAlreadyExists";
  const auto theirs = MakeBucketOrFolder(*ParseUrl("s3://b"), {}, S3Variables(server));
  EXPECT_TRUE(absl::IsPermissionDenied(theirs.status()));
  EXPECT_THAT(theirs.status().message(), HasSubstr("belongs to another account"));
  refusal = "BucketAlreadyOwnedByYou";
  EXPECT_FALSE(*MakeBucketOrFolder(*ParseUrl("s3://b"), {}, S3Variables(server)));
}

TEST(PlaceTest, AMissingPermissionNamesTheRemedy) {
  net::TestServer server(
      [](net::Exchange& exchange) { exchange.Reply(403, Error("AccessDenied")); });
  const base::Variables variables = S3Variables(server);
  Storage storage(variables);
  const Url url = *ParseUrl("s3://b/runs");
  const absl::Status tried = CheckWritable(storage, url, variables);
  EXPECT_TRUE(absl::IsPermissionDenied(tried)) << tried;
  EXPECT_THAT(tried.message(), HasSubstr("s3:PutObject"));
  EXPECT_EQ(*AccountOf(url, variables), "access key AKID of the environment");
}

TEST(PlaceTest, AGoogleBucketIsMadeAndTried) {
  const auto server = GsServer::Start({{"buckets", nlohmann::json::array()}});
  if (server == nullptr) GTEST_SKIP() << "node cannot run tests/gs_server.mjs";
  std::map<std::string, std::string> values = {
      {"STORAGE_EMULATOR_HOST", server->address().substr(7)}};
  const Url url = *ParseUrl("gs://new/runs");
  EXPECT_THAT(MakeBucketOrFolder(url, {}, VariablesOf(values)).status().message(),
              HasSubstr("--project"));
  values["GOOGLE_CLOUD_PROJECT"] = "p";
  const base::Variables variables = VariablesOf(values);
  Storage storage(variables);
  EXPECT_THAT(CheckWritable(storage, url, variables).message(),
              HasSubstr("make it with: muster storage mb gs://new"));
  EXPECT_TRUE(*MakeBucketOrFolder(url, {}, variables));
  EXPECT_FALSE(*MakeBucketOrFolder(url, {}, variables));
  EXPECT_EQ(CheckWritable(storage, url, variables), absl::OkStatus());
  EXPECT_TRUE((*storage.For(url))->List(url.WithName(""), Depth::kAll)->empty());
  EXPECT_THAT(*AccountOf(url, variables), HasSubstr("STORAGE_EMULATOR_HOST"));
}

TEST(PlaceTest, AccountsAreNamedWithoutTheirSecrets) {
  const base::TempDir folder;
  const std::string key = base::JoinPath(folder.path(), "key.json");
  ASSERT_TRUE(base::ReplaceFile(key, R"({"type": "service_account", "client_email": "x@y",
                                          "private_key": "hunter2"})")
                  .ok());
  EXPECT_EQ(*AccountOf(*ParseUrl("gs://b"), VariablesOf({{"GOOGLE_APPLICATION_CREDENTIALS", key}})),
            absl::StrCat("serviceAccount:x@y of ", key));
  EXPECT_EQ(*AccountOf(*ParseUrl("hdfs://h/x"), VariablesOf({{"HADOOP_USER_NAME", "alice"}})),
            "user alice");
  EXPECT_EQ(*AccountOf(*ParseUrl("hdfs://h/x"), VariablesOf({{"MUSTER_HDFS_TOKEN", "hunter2"}})),
            "a delegation token");
}

}  // namespace
}  // namespace muster::storage
