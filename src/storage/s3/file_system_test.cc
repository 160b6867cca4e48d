#include "storage/s3/file_system.h"

#include <atomic>
#include <filesystem>
#include <map>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/bytes/digest.h"
#include "base/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/testing/server.h"
#include "storage/testing/conformance.h"
#include "storage/testing/environment.h"
#include "storage/testing/node_server.h"

namespace muster::storage {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

constexpr char kBucket[] = "muster-test";

base::Variables Environment(const std::string& endpoint, const std::string& access_key = "S3RVER",
                            const std::string& secret_key = "S3RVER") {
  return VariablesOf({{"AWS_ENDPOINT_URL", endpoint},
                      {"AWS_ACCESS_KEY_ID", access_key},
                      {"AWS_SECRET_ACCESS_KEY", secret_key}});
}

// The npm package @20minutes/s3rver, which checks signatures.
class S3rver {
 public:
  // Returns null and sets *why if the server cannot be started.
  static std::unique_ptr<S3rver> Start(std::string* why) {
    const std::string package = absl::StrCat(MUSTER_NPM, "/node_modules/@20minutes/s3rver");
    if (!std::filesystem::exists(package)) {
      *why = absl::StrCat("no s3rver in ", package, "; scripts/test installs it when there is npm");
      return nullptr;
    }
    auto server = std::unique_ptr<S3rver>(new S3rver);
    server->node_ = NodeServer::Start(
        {"--openssl-legacy-provider", "--no-deprecation", "-e",
         absl::StrCat("const S3rver = require('", package, "');",
                      "new S3rver({port: 0, address: '127.0.0.1', silent: true, directory: '",
                      server->folder_.path(), "', configureBuckets: [{name: '", kBucket,
                      "'}]}).run().then(({port}) => console.log(port));")});
    if (server->node_ != nullptr) return server;
    *why = "node cannot run s3rver";
    return nullptr;
  }

  std::string address() const { return node_->address(); }

 private:
  S3rver() = default;

  const base::TempDir folder_;
  std::unique_ptr<NodeServer> node_;
};

class S3Place final : public Place {
 public:
  static std::unique_ptr<Place> Make(std::string* why) {
    auto server = S3rver::Start(why);
    if (server == nullptr) return nullptr;
    auto files = S3FileSystem::FromVariables(Environment(server->address()));
    EXPECT_TRUE(files.ok()) << files.status();
    return std::unique_ptr<Place>(new S3Place(std::move(server), *std::move(files)));
  }
  FileSystem& files() override { return *files_; }
  Url root() override { return {"s3", kBucket, "below/here/"}; }

 private:
  S3Place(std::unique_ptr<S3rver> server, std::unique_ptr<FileSystem> files)
      : server_(std::move(server)), files_(std::move(files)) {}

  const std::unique_ptr<S3rver> server_;
  const std::unique_ptr<FileSystem> files_;
};

// This server supports no conditional writes; in listings it escapes names twice, and does not
// expect ()!* to be encoded in a query.
INSTANTIATE_TEST_SUITE_P(S3, ConformanceTest,
                         testing::Values(Backend{.name = "s3",
                                                 .make = &S3Place::Make,
                                                 .renames = false,
                                                 .exclusive = false,
                                                 .lists_markup = false,
                                                 .replaces = false}));

TEST(S3rverTest, MistakesOfTheUserAreExplained) {
  std::string why;
  const auto server = S3rver::Start(&why);
  if (server == nullptr) GTEST_SKIP() << why;
  const Url url{"s3", kBucket, "x"};
  const auto right = *S3FileSystem::FromVariables(Environment(server->address()));
  for (const absl::Status& status :
       {right->Stat({"s3", "no-such-bucket", "x"}).status(),
        right->List({"s3", "no-such-bucket", ""}, Depth::kAll).status(),
        WriteWhole(*right, {"s3", "no-such-bucket", "x"}, "x")}) {
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("there is no bucket 'no-such-bucket'"));
  }
  const auto unknown =
      *S3FileSystem::FromVariables(Environment(server->address(), "WHO", "hunter2"));
  const auto wrong =
      *S3FileSystem::FromVariables(Environment(server->address(), "S3RVER", "hunter2"));
  for (FileSystem* files : {unknown.get(), wrong.get()}) {
    for (const absl::Status& status :
         {files->Stat(url).status(), files->List(url, Depth::kAll).status(),
          files->OpenForReading(url).status(), WriteWhole(*files, url, "x"), files->Delete(url)}) {
      EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
      EXPECT_THAT(status.message(), Not(HasSubstr("hunter2")));
      EXPECT_THAT(status.message(),
                  HasSubstr(files == wrong.get() ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID"));
    }
  }
}

// An S3 server that the test implements, with faults that no real server shows on request.
class S3FaultTest : public testing::Test {
 protected:
  S3FaultTest() { ForgetProxies(); }

  // Backoff without delay.
  std::unique_ptr<S3FileSystem> Files(const net::TestServer& server) {
    S3Options options{.endpoint = server.address(), .part_bytes = 1000};
    options.http.sleep = [](absl::Duration) {};
    auto http = *net::HttpClient::Create(options.http);
    return std::make_unique<S3FileSystem>(std::make_unique<S3Client>(
        options, std::move(http),
        std::make_unique<AwsCredentialChain>(Environment(server.address(), "AKID", "hunter2"))));
  }
  static std::string Error(const std::string& code) {
    return absl::StrCat("<Error><Code>", code, "</Code><Message>words</Message></Error>");
  }
  static net::Headers Etag(const std::string& content) {
    return {{"ETag", absl::StrCat("\"", base::Md5Hex(content), "\"")}};
  }

  const Url url_{"s3", kBucket, "a/b c"};
};

// Receives a multipart upload.
class Upload {
 public:
  bool begun = false, aborted = false, completed = false;
  std::map<std::string, std::string> parts;  // by number

  // Returns false if the request does not belong to an upload.
  bool Handle(net::Exchange& exchange) {
    const std::string& target = exchange.target();
    if (absl::EndsWith(target, "?uploads=")) {
      begun = true;
      exchange.Reply(200, "<R><UploadId>u 1</UploadId></R>");
    } else if (const size_t at = target.find("?partNumber="); at != std::string::npos) {
      const std::string number = target.substr(at + 12, target.find('&') - at - 12);
      parts[number] = exchange.Body();
      exchange.Reply(200, "", {{"ETag", absl::StrCat("\"", base::Md5Hex(parts[number]), "\"")}});
    } else if (absl::EndsWith(target, "?uploadId=u%201")) {
      (exchange.method() == "DELETE" ? aborted : completed) = true;
      exchange.Reply(exchange.method() == "DELETE" ? 204 : 200,
                     exchange.method() == "DELETE" ? "" : "<R/>");
    } else {
      return false;
    }
    return true;
  }
};

TEST_F(S3FaultTest, EachPartIsRetried) {
  Upload upload;
  std::atomic<int> count = 0;
  net::TestServer server([&](net::Exchange& exchange) {
    const int n = count++;
    if (n % 3 == 1) return exchange.Reply(503, Error("SlowDown"));
    if (n % 3 == 2) return static_cast<void>(exchange.Body(500)), exchange.Cut();
    if (!upload.Handle(exchange)) exchange.Reply(400);
  });
  const auto files = Files(server);
  EXPECT_EQ(WriteWhole(*files, url_, std::string(2500, 'x')), absl::OkStatus());
  EXPECT_THAT(upload.parts, SizeIs(3));
  EXPECT_EQ(upload.parts["1"], std::string(1000, 'x'));
  EXPECT_EQ(upload.parts["3"], std::string(500, 'x'));
  EXPECT_TRUE(upload.completed);
  EXPECT_FALSE(upload.aborted);
}

TEST_F(S3FaultTest, AFailedOrDroppedUploadIsAborted) {
  for (const bool fails : {true, false}) {
    Upload upload;
    net::TestServer server([&](net::Exchange& exchange) {
      if (fails && absl::StrContains(exchange.target(), "partNumber=2")) {
        return exchange.Reply(403, Error("AccessDenied"));
      }
      if (!upload.Handle(exchange)) exchange.Reply(400);
    });
    const auto files = Files(server);
    {
      auto writer = *files->OpenForWriting(url_, IfExists::kReplace);
      const absl::Status status = writer->Append(std::string(2500, 'x'));
      EXPECT_EQ(absl::IsPermissionDenied(status), fails) << status;
      if (fails) {
        EXPECT_EQ(writer->Close(), status);
      }
    }
    EXPECT_TRUE(upload.begun);
    EXPECT_TRUE(upload.aborted);
    EXPECT_FALSE(upload.completed);
  }
}

TEST_F(S3FaultTest, AnErrorInTheBodyOfA200IsAnError) {
  Upload upload;
  net::TestServer server([&](net::Exchange& exchange) {
    if (exchange.method() == "POST" && upload.begun) {
      return exchange.Reply(200, absl::StrCat("  ", Error("InternalError")));
    }
    if (!upload.Handle(exchange)) exchange.Reply(400);
  });
  const auto files = Files(server);
  const absl::Status status = WriteWhole(*files, url_, std::string(2500, 'x'));
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(upload.aborted);
}

TEST_F(S3FaultTest, ALostResponseIsNoFailure) {
  const std::string content(2500, 'x');
  const std::string parts[] = {base::Md5Hex(content.substr(0, 1000)),
                               base::Md5Hex(content.substr(0, 1000)),
                               base::Md5Hex(content.substr(0, 500))};
  std::string digests;
  for (const std::string& part : parts) digests += absl::HexStringToBytes(part);
  const std::string etag = absl::StrCat("\"", base::Md5Hex(digests), "-3\"");
  Upload upload;
  net::TestServer server([&](net::Exchange& exchange) {
    if (exchange.method() == "HEAD") return exchange.Reply(200, "", {{"ETag", etag}});
    if (upload.completed) return exchange.Reply(404, Error("NoSuchUpload"));
    if (exchange.method() == "POST" && upload.begun) {
      upload.completed = true;
      return exchange.Cut();
    }
    if (!upload.Handle(exchange)) exchange.Reply(400);
  });
  const auto files = Files(server);
  EXPECT_EQ(WriteWhole(*files, url_, content), absl::OkStatus());
}

TEST_F(S3FaultTest, DetectsCorruptionByTheServer) {
  net::TestServer server([](net::Exchange& exchange) { exchange.Reply(200, "", Etag("damaged")); });
  const auto files = Files(server);
  EXPECT_TRUE(absl::IsDataLoss(WriteWhole(*files, url_, "content")));
}

TEST_F(S3FaultTest, SendsConditionsAndHandlesTheirFailure) {
  std::string condition;
  net::TestServer server([&](net::Exchange& exchange) {
    if (exchange.method() == "HEAD") return exchange.Reply(404);
    if (exchange.method() == "GET") return exchange.Reply(200, "<ListBucketResult/>");
    condition = exchange.header("if-none-match");
    exchange.Reply(412, Error("PreconditionFailed"));
  });
  const auto files = Files(server);
  const absl::Status status = WriteWhole(*files, url_, "x", IfExists::kFail);
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_EQ(condition, "*");
}

TEST_F(S3FaultTest, AListingOfManyPages) {
  net::TestServer server([](net::Exchange& exchange) {
    const std::string& target = exchange.target();
    const bool second = absl::StrContains(target, "continuation-token=a%2Fb%3D&");
    exchange.Reply(
        200,
        absl::StrCat(
            "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>",
            second ? "false"
                   : "true</IsTruncated><NextContinuationToken>a/b=</"
                     "NextContinuationToken><IsTruncated>true",
            "</IsTruncated><Contents><Key>a/", second ? "%E2%82%AC+1%2B" : "0",
            "</Key><Size>5</Size><LastModified>2026-11-15T01:02:03.000Z</LastModified></Contents>",
            "<Contents><Key>a/marker/</Key><Size>0</Size></Contents></ListBucketResult>"));
  });
  const auto files = Files(server);
  const auto found = files->List({"s3", kBucket, "a/"}, Depth::kAll);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_THAT(*found, SizeIs(2));
  EXPECT_EQ(found->at(0).url.name, "a/0");
  EXPECT_EQ(found->at(1).url.name, "a/€ 1+");
  EXPECT_EQ(absl::FormatTime(found->at(1).modified, absl::UTCTimeZone()),
            "2026-11-15T01:02:03+00:00");
}

TEST_F(S3FaultTest, EndlessAndMalformedListingsAreRejected) {
  for (const char* text :
       {"<L><IsTruncated>true</IsTruncated></L>", "no XML",
        "<L><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken></L>",
        "<L><Contents><Key>a</Key><Size>-1</Size></Contents></L>"}) {
    net::TestServer server([&](net::Exchange& exchange) { exchange.Reply(200, text); });
    const auto files = Files(server);
    EXPECT_TRUE(absl::IsDataLoss(files->List(url_, Depth::kAll).status())) << text;
    EXPECT_LE(server.requests(), 2);
  }
}

TEST_F(S3FaultTest, ReplacingAnObjectWhileItIsReadIsAborted) {
  std::atomic<int> count = 0;
  net::TestServer server([&](net::Exchange& exchange) {
    if (exchange.method() == "HEAD") {
      return exchange.Reply(200, "", {{"ETag", "\"1\""}, {"Content-Length", "10"}});
    }
    const bool first = count++ == 0;
    exchange.Reply(206, "01234", {{"ETag", first ? "\"1\"" : "\"2\""}});
  });
  const auto files = Files(server);
  const auto reader = *files->OpenForReading(url_);
  std::string buffer(5, '?');
  EXPECT_EQ(*reader->Read(0, absl::MakeSpan(buffer)), 5u);
  EXPECT_TRUE(absl::IsAborted(reader->Read(5, absl::MakeSpan(buffer)).status()));
}

TEST_F(S3FaultTest, ReadingSurvivesCutsAndRejectsAnotherRange) {
  std::atomic<int> count = 0;
  net::TestServer server([&](net::Exchange& exchange) {
    if (exchange.method() == "HEAD") {
      return exchange.Reply(200, "", {{"ETag", "\"1\""}, {"Content-Length", "10"}});
    }
    if (exchange.header("range") == "bytes=5-9")
      return exchange.Reply(200, "01234", {{"ETag", "\"1\""}});
    if (count++ == 0) {
      exchange.Send("HTTP/1.1 206 P\r\nETag: \"1\"\r\nContent-Length: 5\r\n\r\n01");
      return exchange.Cut();
    }
    exchange.Reply(206, "01234", {{"ETag", "\"1\""}});
  });
  const auto files = Files(server);
  const auto reader = *files->OpenForReading(url_);
  std::string buffer(5, '?');
  EXPECT_EQ(*reader->Read(0, absl::MakeSpan(buffer)), 5u);
  EXPECT_EQ(buffer, "01234");
  EXPECT_TRUE(absl::IsDataLoss(reader->Read(5, absl::MakeSpan(buffer)).status()));
}

TEST_F(S3FaultTest, ServerErrorsBecomeReadableMessages) {
  struct Case {
    int status;
    const char* code;
    absl::StatusCode expected;
    const char* words;
  };
  for (const Case& one :
       {Case{403, "RequestTimeTooSkewed", absl::StatusCode::kFailedPrecondition, "clock"},
        Case{403, "AccessDenied", absl::StatusCode::kPermissionDenied, "lack the permission"},
        Case{400, "ExpiredToken", absl::StatusCode::kUnauthenticated, "expired"},
        Case{301, "PermanentRedirect", absl::StatusCode::kFailedPrecondition, "AWS_REGION=eu-x-1"},
        Case{503, "SlowDown", absl::StatusCode::kUnavailable, "SlowDown: words"}}) {
    net::TestServer server([&](net::Exchange& exchange) {
      exchange.Reply(one.status, Error(one.code), {{"x-amz-bucket-region", "eu-x-1"}});
    });
    const auto files = Files(server);
    for (const absl::Status& status :
         {files->List(url_, Depth::kAll).status(), files->Stat(url_).status(),
          WriteWhole(*files, url_, "x"), files->Delete(url_)}) {
      EXPECT_EQ(status.code(), one.expected) << status;
      EXPECT_THAT(status.message(), HasSubstr(one.words));
      EXPECT_THAT(status.message(), HasSubstr("s3://muster-test/a/b c"));
      EXPECT_THAT(status.message(), Not(HasSubstr("hunter2")));
    }
  }
}

TEST_F(S3FaultTest, NoResponseIsUnavailable) {
  std::string address;
  std::unique_ptr<S3FileSystem> files;
  {
    const net::TestServer server([](net::Exchange&) {});
    files = Files(server);
  }
  const absl::Status status = files->Stat(url_).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("s3://muster-test/a/b c: "));
}

}  // namespace
}  // namespace muster::storage
