#include "storage/url.h"

#include "absl/strings/str_cat.h"
#include "base/storage_schemes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/storage.h"

namespace muster::storage {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(UrlTest, PathsAreFiles) {
  EXPECT_EQ(*ParseUrl("/data/x"), (Url{.name = "/data/x"}));
  EXPECT_EQ(*ParseUrl("data/x"), (Url{.name = "data/x"}));
  EXPECT_EQ(*ParseUrl("file:///data/x"), (Url{.name = "/data/x"}));
  EXPECT_EQ(*ParseUrl("a/b://c"), (Url{.name = "a/b://c"}));
}

TEST(UrlTest, BucketsAndKeys) {
  EXPECT_EQ(*ParseUrl("s3://b.1-x/a/b"), (Url{"s3", "b.1-x", "a/b"}));
  EXPECT_EQ(*ParseUrl("S3://b/"), (Url{"s3", "b", ""}));
  EXPECT_EQ(*ParseUrl("gs://b"), (Url{"gs", "b", ""}));
  EXPECT_EQ(*ParseUrl("s3://b//a"), (Url{"s3", "b", "/a"}));
  EXPECT_EQ(*ParseUrl("hdfs://host:9870/a/b"), (Url{"hdfs", "host:9870", "/a/b"}));
  EXPECT_EQ(*ParseUrl("hdfs://[::1]:9870"), (Url{"hdfs", "[::1]:9870", "/"}));
  EXPECT_EQ(*ParseUrl("hdfs:///a/b"), (Url{"hdfs", "", "/a/b"}));
  EXPECT_EQ(*ParseUrl("dfs:///a/b"), (Url{"hdfs", "", "/a/b"}));
  EXPECT_EQ(*ParseUrl("memory://a/b"), (Url{"memory", "", "a/b"}));
}

TEST(UrlTest, EverySchemeHasAStorage) {
  Storage storage([](const std::string&) { return ""; });
  for (const absl::string_view scheme : base::kStorageSchemes) {
    const auto url = ParseUrl(absl::StrCat(scheme, "://place/name"));
    ASSERT_TRUE(url.ok()) << url.status();
    EXPECT_NE(storage.For(*url).status().code(), absl::StatusCode::kUnimplemented) << scheme;
  }
}

TEST(UrlTest, SupportedStorages) {
  for (const char* path : {"x", "/x", "file:///x", "gs://b/x", "S3://b", "hdfs://h", "dfs:///x"}) {
    EXPECT_TRUE(IsSupported(path)) << path;
  }
  for (const char* path : {"dfs://user/x", "abfs://c/x", "foo://"}) {
    EXPECT_FALSE(IsSupported(path)) << path;
  }
}

TEST(UrlTest, NamesAreLiteral) {
  for (const char* name :
       {"a b", "100%", "%20", "a#b", "a?b=c", "ä/日本", "a//b", "a\\b", "a*[b]"}) {
    for (const char* root : {"s3://b/", "hdfs://h/", "memory://", "/d/", "gs://b/"}) {
      const std::string text = std::string(root) + name;
      EXPECT_EQ(ParseUrl(text)->ToString(), text);
    }
  }
}

TEST(UrlTest, UrlsRoundTrip) {
  for (const char* text : {"s3://b", "file:///x", "file://s3://b", "hdfs://h", "hdfs:///a", "x"}) {
    const Url url = *ParseUrl(text);
    EXPECT_EQ(*ParseUrl(url.ToString()), url) << text;
  }
}

TEST(UrlTest, Parts) {
  EXPECT_EQ(ParseUrl("s3://b")->Child("x"), (Url{"s3", "b", "x"}));
  EXPECT_EQ(ParseUrl("s3://b/a")->Child("x"), (Url{"s3", "b", "a/x"}));
  EXPECT_EQ(ParseUrl("s3://b/a/")->Child("x"), (Url{"s3", "b", "a/x"}));
  EXPECT_EQ(ParseUrl("s3://b/a/c")->Basename(), "c");
  EXPECT_EQ(ParseUrl("s3://b/a/")->Basename(), "");
  EXPECT_EQ(ParseUrl("x")->Basename(), "x");
}

TEST(UrlTest, InvalidUrlsAreExplained) {
  EXPECT_THAT(ParseUrl("s4://b/x").status().message(), HasSubstr("did you mean 's3'"));
  EXPECT_THAT(ParseUrl("http://h/x").status().message(), HasSubstr("or a plain path"));
  EXPECT_THAT(ParseUrl("s3://").status().message(), HasSubstr("s3://bucket/name"));
  EXPECT_THAT(ParseUrl("gs:///x").status().message(), HasSubstr("gs://bucket/name"));
  EXPECT_THAT(ParseUrl("hdfs://").status().message(), HasSubstr("hdfs://host:port"));
  EXPECT_THAT(ParseUrl("dfs://user/x").status().message(), HasSubstr("expected dfs:///path"));
  EXPECT_THAT(ParseUrl("hdfs://a b/x").status().message(), HasSubstr("hdfs://host:port"));
  EXPECT_THAT(ParseUrl("").status().message(), HasSubstr("names no file"));
  EXPECT_FALSE(ParseUrl(absl::string_view("a\0b", 3)).ok());
  const auto secret = ParseUrl("s3://key:hunter2@bucket/x");
  EXPECT_EQ(secret.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(secret.status().message(), Not(HasSubstr("hunter2")));
}

}  // namespace
}  // namespace muster::storage
