// HDFS against servers whose responses the test defines.
#include <atomic>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/testing/server.h"
#include "storage/hdfs/testing.h"

namespace muster::storage {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// A server that the test implements.
class HdfsAnswersTest : public testing::Test {
 protected:
  // Sends this response to every request.
  absl::Status StatusFor(int status, const std::string& body) {
    net::TestServer server([&](net::Exchange& exchange) { exchange.Reply(status, body); });
    return FilesWith({})->Stat(At(server, "/a")).status();
  }
  static Url At(const net::TestServer& server, const std::string& name) {
    return {"hdfs", std::string(absl::StripPrefix(server.address(), "http://")), name};
  }
  static std::string File(const std::string& name, const std::string& type = "FILE") {
    return absl::StrCat(R"({"pathSuffix":")", name, R"(","type":")", type,
                        R"(","length":5,"modificationTime":1000,"fileId":7})");
  }
  static std::string Page(const std::string& entries, int remaining) {
    return absl::StrCat(R"({"DirectoryListing":{"partialListing":{"FileStatuses":{"FileStatus":[)",
                        entries, R"(]}},"remainingEntries":)", remaining, "}}");
  }
};

TEST_F(HdfsAnswersTest, DetectsAServerThatIsNotWebHdfs) {
  for (const absl::Status& status :
       {StatusFor(404,
                  "It looks like you are making an HTTP request to a Hadoop IPC port. This is not "
                  "the correct port for the web interface on this daemon."),
        StatusFor(404, "<html>"), StatusFor(200, "<html>"), StatusFor(403, "{}"),
        StatusFor(302, "")}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("9870"));
  }
  EXPECT_THAT(StatusFor(404, "a Hadoop IPC port").message(), HasSubstr("RPC"));
  EXPECT_TRUE(absl::IsUnavailable(StatusFor(503, "")));
  net::TestServer rude([](net::Exchange& exchange) {
    exchange.Send("\x01\x02 some bytes\r\n");
    exchange.Cut();
  });
  const absl::Status status = FilesWith({})->Stat(At(rude, "/a")).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
}

TEST_F(HdfsAnswersTest, NoResponseIsUnavailable) {
  Url url;
  {
    const net::TestServer server([](net::Exchange&) {});
    url = At(server, "/a");
  }
  const absl::Status status = FilesWith({})->Stat(url).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr(url.ToString()));
  url.authority = "127.77.0.1:8020";
  const absl::Status rpc = FilesWith({})->Stat(url).status();
  EXPECT_THAT(rpc.message(), HasSubstr("9870"));
}

TEST_F(HdfsAnswersTest, AListingInPages) {
  net::TestServer server([](net::Exchange& exchange) {
    const bool second = absl::StrContains(exchange.target(), "startAfter=b%20%25");
    exchange.Reply(200, second ? Page(File("c"), 0) : Page(File("a") + "," + File("b %"), 1));
  });
  const auto found = FilesWith({})->List(At(server, "/d/"), Depth::kAll);
  ASSERT_TRUE(found.ok()) << found.status();
  std::vector<std::string> names;
  for (const FileInfo& info : *found) names.push_back(info.url.name);
  EXPECT_THAT(names, ElementsAre("/d/a", "/d/b %", "/d/c"));
  EXPECT_EQ(found->at(0).modified, absl::FromUnixSeconds(1));
}

TEST_F(HdfsAnswersTest, AServerWithoutPages) {
  net::TestServer server([](net::Exchange& exchange) {
    if (absl::StrContains(exchange.target(), "op=LISTSTATUS_BATCH")) {
      return exchange.Reply(400, R"({"RemoteException":{"exception":"IllegalArgumentException"}})");
    }
    exchange.Reply(200, absl::StrCat(R"({"FileStatuses":{"FileStatus":[)", File("a"), "]}}"));
  });
  const auto files = FilesWith({});
  EXPECT_EQ(files->List(At(server, "/d/"), Depth::kAll)->size(), 1u);
  EXPECT_EQ(files->List(At(server, "/d/"), Depth::kAll)->size(), 1u);
  EXPECT_EQ(server.requests(), 3);
}

TEST_F(HdfsAnswersTest, EndlessAndMalformedListingsAreRejected) {
  for (const std::string& text : {Page(File("a"), 1), Page("", 1), Page(File("../x"), 0),
                                  Page(File(std::string(200, 'a'), "DIRECTORY"), 0),
                                  std::string("{}"), std::string("no JSON")}) {
    net::TestServer server([&](net::Exchange& exchange) { exchange.Reply(200, text); });
    EXPECT_TRUE(absl::IsDataLoss(FilesWith({})->List(At(server, "/"), Depth::kAll).status()))
        << text;
  }
}

// HttpFS sends data itself, and reports no file ids.
TEST_F(HdfsAnswersTest, AGatewayCanBeReadFrom) {
  const std::string status = R"({"FileStatus":{"type":"FILE","length":5,"modificationTime":1000}})";
  net::TestServer server([&](net::Exchange& exchange) {
    exchange.Reply(200, absl::StrContains(exchange.target(), "op=OPEN") ? "hello" : status);
  });
  const auto files = FilesWith({});
  EXPECT_EQ(*ReadWhole(*files, At(server, "/a")), "hello");
}

TEST_F(HdfsAnswersTest, ARejectedRenameIsAnError) {
  // Like HttpFS, which ignores rename options.
  net::TestServer server([&](net::Exchange& exchange) {
    const std::string& target = exchange.target();
    if (absl::StrContains(target, "op=RENAME")) return exchange.Reply(200, R"({"boolean":false})");
    const bool source = absl::StrContains(target, "/from");
    exchange.Reply(200, absl::StrCat(R"({"FileStatus":{"type":"FILE","length":)", source ? 5 : 6,
                                     R"(,"modificationTime":1000}})"));
  });
  const absl::Status status = FilesWith({})->Rename(At(server, "/from"), At(server, "/to"));
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_TRUE(absl::IsUnimplemented(
      FilesWith({})->Rename(At(server, "/from"), {"hdfs", "elsewhere:1", "/to"})));
}

TEST_F(HdfsAnswersTest, AnUnreachableDatanodeIsNamed) {
  std::string dead;
  {
    const net::TestServer server([](net::Exchange&) {});
    dead = server.address();
  }
  std::atomic<int> asked = 0;
  net::TestServer server([&](net::Exchange& exchange) {
    if (absl::StrContains(exchange.target(), "op=OPEN")) {
      ++asked;
      return exchange.Reply(307, "",
                            {{"Location", dead + "/webhdfs/v1/a?op=OPEN&delegation=hunter2"}});
    }
    exchange.Reply(200, absl::StrCat(R"({"FileStatus":)", File(""), "}"));
  });
  const auto content = ReadWhole(*FilesWith({}), At(server, "/a"));
  EXPECT_TRUE(absl::IsUnavailable(content.status())) << content.status();
  EXPECT_THAT(content.status().message(),
              AllOf(HasSubstr(absl::StripPrefix(dead, "http://")), Not(HasSubstr("hunter2"))));
  EXPECT_EQ(asked, 6);  // the namenode may choose another datanode
}

}  // namespace
}  // namespace muster::storage
