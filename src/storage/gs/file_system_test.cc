#include "storage/gs/file_system.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/bytes/crc32c.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/testing/server.h"
#include "storage/testing/conformance.h"
#include "storage/testing/environment.h"
#include "storage/testing/gs_server.h"

namespace muster::storage {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Json = nlohmann::json;

constexpr char kBucket[] = "muster-test";
constexpr char kNoNode[] = "node cannot run tests/gs_server.mjs";
constexpr int64_t kStep = 256 << 10;

class GsPlace final : public Place {
 public:
  static std::unique_ptr<Place> Make(std::string* why) {
    // Small pages, so that most listings have several.
    auto server = GsServer::Start({{"buckets", {kBucket}}, {"pageSize", 3}});
    if (server == nullptr) *why = kNoNode;
    if (server == nullptr) return nullptr;
    auto files = GsFileSystem::FromVariables(
        VariablesOf({{"STORAGE_EMULATOR_HOST", server->address().substr(7)}}));
    EXPECT_TRUE(files.ok()) << files.status();
    return std::unique_ptr<Place>(new GsPlace(std::move(server), *std::move(files)));
  }
  FileSystem& files() override { return *files_; }
  Url root() override { return {"gs", kBucket, "below/here/"}; }

 private:
  GsPlace(std::unique_ptr<GsServer> server, std::unique_ptr<FileSystem> files)
      : server_(std::move(server)), files_(std::move(files)) {}

  const std::unique_ptr<GsServer> server_;
  const std::unique_ptr<FileSystem> files_;
};

INSTANTIATE_TEST_SUITE_P(Gs, ConformanceTest,
                         testing::Values(Backend{
                             .name = "gs", .make = &GsPlace::Make, .renames = false}));

// Backoff without delay, and a stall timeout of one second.
std::unique_ptr<GsFileSystem> FilesAt(const std::string& address) {
  ForgetProxies();
  GsOptions options{.endpoint = address, .emulator = true, .chunk_bytes = 4 * kStep};
  options.http.stall_timeout = absl::Seconds(1);
  options.http.sleep = [](absl::Duration) {};
  auto http = *net::HttpClient::Create(options.http);
  return std::make_unique<GsFileSystem>(
      std::make_unique<GsClient>(options, std::move(http), nullptr));
}

// A conforming server with injected faults.
class GsFaultTest : public testing::Test {
 protected:
  void SetUp() override {
    server_ = GsServer::Start({{"buckets", {kBucket}}, {"forbidden", {"theirs"}}});
    if (server_ == nullptr) GTEST_SKIP() << kNoNode;
    files_ = FilesAt(server_->address());
    for (size_t i = 0; i < large_.size(); ++i) large_[i] = static_cast<char>(i * 131 >> 8);
  }

  absl::Status Write(const std::string& content, IfExists if_exists = IfExists::kReplace) {
    return WriteWhole(*files_, url_, content, if_exists);
  }

  const Url url_{"gs", kBucket, "a/b c"};
  std::string large_ = std::string(10 * kStep + 777, '\0');  // three chunks
  std::unique_ptr<GsServer> server_;
  std::unique_ptr<GsFileSystem> files_;
};

TEST_F(GsFaultTest, RetriesABurstOfErrors) {
  for (const Json& storm :
       {Json{{"kind", "status"}, {"status", 503}, {"times", 5}},
        Json{
            {"kind", "status"}, {"status", 429}, {"times", 2}, {"headers", {{"retry-after", "7"}}}},
        Json{{"kind", "stall"}}}) {
    for (const IfExists if_exists : {IfExists::kReplace, IfExists::kFail}) {
      server_->Fail(storm);
      EXPECT_EQ(Write("small", if_exists), absl::OkStatus());
      server_->Fail(storm);
      EXPECT_EQ(*ReadWhole(*files_, url_), "small");
      server_->Fail(storm);
      EXPECT_THAT(*files_->List(url_, Depth::kAll), SizeIs(1));
      server_->Fail(storm);
      EXPECT_EQ(files_->Delete(url_), absl::OkStatus());
    }
  }
}

TEST_F(GsFaultTest, RetriesABurstOfErrorsDuringAnUpload) {
  server_->Fail(
      {{{"kind", "status"}, {"status", 503}, {"method", "PUT"}, {"skip", 1}, {"times", 4}},
       {{"kind", "status"}, {"status", 429}, {"method", "PUT"}, {"skip", 4}}});
  EXPECT_EQ(Write(large_), absl::OkStatus());
  EXPECT_EQ(*ReadWhole(*files_, url_), large_);
}

TEST_F(GsFaultTest, PersistentErrorsAreReportedAndLeaveNothing) {
  server_->Fail(
      {{{"kind", "status"}, {"status", 503}, {"method", "PUT"}, {"skip", 1}, {"times", 1000}}});
  const absl::Status status = Write(large_);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(), AllOf(HasSubstr("gs://muster-test/a/b c: "), HasSubstr("503")));
  const Json state = server_->Test("state");
  EXPECT_EQ(state["cancelled"], 1);
  EXPECT_EQ(state["openUploads"], 0);
  EXPECT_THAT(*files_->List(url_, Depth::kAll), IsEmpty());
}

TEST_F(GsFaultTest, ResumesAChunkAtTheOffsetOfTheServer) {
  // Three and a half steps of the second chunk arrive; the server keeps three.
  server_->Fail(
      {{{"kind", "cutRequest"}, {"method", "PUT"}, {"skip", 1}, {"bytes", 3 * kStep + kStep / 2}}});
  EXPECT_EQ(Write(large_), absl::OkStatus());
  EXPECT_EQ(*ReadWhole(*files_, url_), large_);
  EXPECT_EQ(server_->CountOf("bytes */*"), 1);
  EXPECT_EQ(server_->CountOf(absl::StrCat("bytes ", 7 * kStep, "-", 8 * kStep - 1, "/*")), 1);
}

TEST_F(GsFaultTest, ResumesTheLastAndTheOnlyChunk) {
  server_->Fail({{"kind", "cutRequest"}, {"method", "PUT"}, {"skip", 2}, {"bytes", kStep + 5}});
  EXPECT_EQ(Write(large_), absl::OkStatus());
  EXPECT_EQ(*ReadWhole(*files_, url_), large_);
  EXPECT_EQ(server_->CountOf(absl::StrCat("bytes ", 9 * kStep, "-")), 1);
  server_->Fail({{"kind", "cutRequest"}, {"method", "POST"}, {"bytes", 100}});
  EXPECT_EQ(Write("small"), absl::OkStatus());
  EXPECT_EQ(*ReadWhole(*files_, url_), "small");
}

TEST_F(GsFaultTest, SendsTheRestOfAPartlyAcceptedChunk) {
  server_->Fail({{"kind", "keepHalf"}, {"method", "PUT"}, {"times", 3}});
  EXPECT_EQ(Write(large_), absl::OkStatus());
  EXPECT_EQ(*ReadWhole(*files_, url_), large_);
}

TEST_F(GsFaultTest, ALostResponseIsNoFailure) {
  for (const std::string& content : {std::string(), std::string("small"), large_}) {
    server_->Fail({{"kind", "loseResponse"}, {"method", "PUT"}, {"times", 2}});
    EXPECT_EQ(Write(content, IfExists::kFail), absl::OkStatus());
    EXPECT_EQ(*ReadWhole(*files_, url_), content);
    EXPECT_TRUE(absl::IsAlreadyExists(Write(content, IfExists::kFail)));
    server_->Fail({{"kind", "loseResponse"}, {"method", "POST"}});
    EXPECT_EQ(Write(content), absl::OkStatus());
    EXPECT_EQ(files_->Delete(url_), absl::OkStatus());
  }
}

TEST_F(GsFaultTest, AnExpiredUploadIsReported) {
  server_->Fail({{"kind", "status"}, {"status", 410}, {"method", "PUT"}, {"skip", 1}});
  const absl::Status status = Write(large_);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("start again"));
}

TEST_F(GsFaultTest, ADroppedWriterCancelsItsUpload) {
  {
    const auto writer = *files_->OpenForWriting(url_, IfExists::kReplace);
    ASSERT_EQ(writer->Append(large_), absl::OkStatus());
    EXPECT_EQ(server_->Test("state")["openUploads"], 1);
  }
  const Json state = server_->Test("state");
  EXPECT_EQ(state["openUploads"], 0);
  EXPECT_EQ(state["cancelled"], 1);
}

TEST_F(GsFaultTest, DetectsCorruptionOfUploads) {
  for (const char* kind : {"damageOnTheWay", "damage"}) {
    for (const std::string& content : {std::string("small"), large_}) {
      for (const IfExists if_exists : {IfExists::kReplace, IfExists::kFail}) {
        // The last chunk of a large object; a small one may be sent by either method.
        server_->Fail({{{"kind", kind}, {"method", "PUT"}, {"skip", content == large_ ? 2 : 0}},
                       {{"kind", kind}, {"match", "uploadType=multipart"}}});
        const absl::Status status = Write(content, if_exists);
        EXPECT_TRUE(absl::IsDataLoss(status)) << kind << status;
        EXPECT_THAT(*files_->List(url_, Depth::kAll), IsEmpty());
        EXPECT_EQ(server_->Test("state")["openUploads"], 0);
      }
    }
  }
}

TEST_F(GsFaultTest, DetectsCorruptionOfDownloads) {
  ASSERT_EQ(Write("content"), absl::OkStatus());
  server_->Fail({{"kind", "damage"}, {"match", "alt=media"}});
  EXPECT_TRUE(absl::IsDataLoss(ReadWhole(*files_, url_).status()));
  EXPECT_EQ(*ReadWhole(*files_, url_), "content");
  // Also when reading in pieces, from the end.
  const auto reader = *files_->OpenForReading(url_);
  server_->Fail({{"kind", "damage"}, {"match", "alt=media"}, {"skip", 1}});
  std::string buffer(3, '?');
  EXPECT_TRUE(reader->Read(6, absl::MakeSpan(buffer)).ok());
  EXPECT_TRUE(reader->Read(3, absl::MakeSpan(buffer)).ok());
  EXPECT_TRUE(absl::IsDataLoss(reader->Read(0, absl::MakeSpan(buffer)).status()));
}

TEST_F(GsFaultTest, ReadingSurvivesCutAndStalledConnections) {
  ASSERT_EQ(Write(large_), absl::OkStatus());
  for (const char* kind : {"cutResponse", "stallResponse"}) {
    server_->Fail({{"kind", kind}, {"match", "alt=media"}, {"bytes", 100'000}});
    EXPECT_EQ(*ReadWhole(*files_, url_), large_) << kind;
  }
}

TEST_F(GsFaultTest, ReplacingAnObjectWhileItIsReadIsAborted) {
  ASSERT_EQ(Write("0123456789"), absl::OkStatus());
  const auto reader = *files_->OpenForReading(url_);
  std::string buffer(5, '?');
  EXPECT_EQ(*reader->Read(0, absl::MakeSpan(buffer)), 5u);
  ASSERT_EQ(Write("abcdefghij"), absl::OkStatus());
  EXPECT_TRUE(absl::IsAborted(reader->Read(5, absl::MakeSpan(buffer)).status()));
  ASSERT_EQ(files_->Delete(url_), absl::OkStatus());
  EXPECT_TRUE(absl::IsNotFound(reader->Read(5, absl::MakeSpan(buffer)).status()));
}

TEST_F(GsFaultTest, MissingAndForeignBuckets) {
  for (const std::string bucket : {"no-such-bucket", "theirs"}) {
    const bool absent = bucket == "no-such-bucket";
    const Url url{"gs", bucket, "x"};
    for (const absl::Status& status :
         {files_->Stat(url).status(), files_->List(url, Depth::kAll).status(),
          files_->OpenForReading(url).status(), files_->Delete(url), WriteWhole(*files_, url, "x"),
          WriteWhole(*files_, url, "x", IfExists::kFail)}) {
      EXPECT_EQ(status.code(),
                absent ? absl::StatusCode::kNotFound : absl::StatusCode::kPermissionDenied);
      EXPECT_THAT(status.message(), HasSubstr(absent ? "there is no bucket 'no-such-bucket'"
                                                     : "lack the permission"));
      EXPECT_THAT(status.message(), HasSubstr(url.ToString()));
    }
  }
}

TEST_F(GsFaultTest, OddNames) {
  for (const std::string& name :
       {std::string("a/../b"), std::string("//two//slashes"), std::string("./x"),
        std::string("%2e%2e"), std::string("😀/é"), std::string("a\tb"), std::string(1024, 'n')}) {
    const Url url{"gs", kBucket, name};
    EXPECT_EQ(WriteWhole(*files_, url, name), absl::OkStatus()) << name;
    EXPECT_EQ(WriteWhole(*files_, url, name, IfExists::kFail).code(),
              absl::StatusCode::kAlreadyExists);
    EXPECT_EQ(*ReadWhole(*files_, url), name);
    EXPECT_THAT(*files_->List(url, Depth::kAll), SizeIs(1));
    EXPECT_EQ(files_->Delete(url), absl::OkStatus());
  }
  for (const std::string& name : {std::string("."), std::string(".."), std::string(1025, 'n'),
                                  std::string("a\nb"), std::string("\xff")}) {
    const Url url{"gs", kBucket, name};
    EXPECT_TRUE(absl::IsInvalidArgument(WriteWhole(*files_, url, "x"))) << name;
    EXPECT_FALSE(files_->Stat(url).ok()) << name;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(files_->Delete({"gs", kBucket, ".."})));
  EXPECT_TRUE(absl::IsInvalidArgument(files_->List({"gs", "..", ""}, Depth::kAll).status()));
}

TEST_F(GsFaultTest, RateLimitAndQuotaErrorsAreResourceExhausted) {
  for (const Json& fault :
       {Json{{"status", 429}, {"reason", "rateLimitExceeded"}},
        Json{{"status", 403}, {"reason", "userRateLimitExceeded"}},
        Json{{"status", 403}, {"reason", "quotaExceeded"}}, Json{{"status", 413}}}) {
    Json always = fault;
    always.update({{"kind", "status"}, {"times", 1000}});
    server_->Fail(always);
    EXPECT_TRUE(absl::IsResourceExhausted(files_->Stat(url_).status())) << fault;
    EXPECT_TRUE(absl::IsResourceExhausted(Write("x"))) << fault;
  }
}

// Servers that violate the protocol.
TEST(GsAnswersTest, EndlessAndMalformedListingsAreRejected) {
  for (const char* text :
       {R"({"nextPageToken":"t"})", "no JSON", "[]", R"({"items":[{"name":"a"}]})",
        R"({"items":[{"name":"a","size":"-1","generation":"1"}]})", R"({"items":["a"]})",
        R"({"items":[{"name":"a","size":"99999999999999999999","generation":"1"}]})"}) {
    net::TestServer server([&](net::Exchange& exchange) { exchange.Reply(200, text); });
    const auto files = FilesAt(server.address());
    EXPECT_TRUE(absl::IsDataLoss(files->List({"gs", kBucket, ""}, Depth::kAll).status())) << text;
    EXPECT_LE(server.requests(), 2);
    EXPECT_TRUE(absl::IsDataLoss(files->Stat({"gs", kBucket, "a"}).status())) << text;
  }
}

TEST(GsAnswersTest, InvalidUploadResponsesAreRejected) {
  const std::string content(8 * kStep + 1, 'x');  // a chunk, another one, and a byte
  struct Case {
    int status;
    net::Headers headers;
    absl::StatusCode expected;
  };
  for (const Case& one :
       {Case{308, {{"Range", "bytes=0-9223372036854775807"}}, absl::StatusCode::kDataLoss},
        Case{308, {{"Range", "bytes=5-9"}}, absl::StatusCode::kDataLoss},
        Case{308, {{"Range", "none"}}, absl::StatusCode::kDataLoss},
        Case{308, {}, absl::StatusCode::kUnavailable},  // the server accepts nothing
        Case{200, {}, absl::StatusCode::kDataLoss},
        Case{403, {}, absl::StatusCode::kPermissionDenied}}) {
    bool cancelled = false;
    net::TestServer server([&](net::Exchange& exchange) {
      if (exchange.method() == "POST") {
        return exchange.Reply(
            200, "", {{"Location", absl::StrCat("http://", exchange.header("host"), "/s")}});
      }
      cancelled = cancelled || exchange.method() == "DELETE";
      exchange.Reply(cancelled ? 499 : one.status, "", one.headers);
    });
    const auto files = FilesAt(server.address());
    const absl::Status status = WriteWhole(*files, {"gs", kBucket, "a"}, content);
    EXPECT_EQ(status.code(), one.expected) << status;
    EXPECT_TRUE(cancelled);
    EXPECT_LE(server.requests(), 10);
  }
  net::TestServer nameless([&](net::Exchange& exchange) { exchange.Reply(200); });
  EXPECT_TRUE(
      absl::IsDataLoss(WriteWhole(*FilesAt(nameless.address()), {"gs", kBucket, "a"}, content)));
}

TEST(GsAnswersTest, NoResponseIsUnavailable) {
  std::unique_ptr<GsFileSystem> files;
  {
    const net::TestServer server([](net::Exchange&) {});
    files = FilesAt(server.address());
  }
  const absl::Status status = files->Stat({"gs", kBucket, "a"}).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("gs://muster-test/a: "));
}

}  // namespace
}  // namespace muster::storage
