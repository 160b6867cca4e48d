#include "storage/hdfs/file_system.h"

#include <atomic>
#include <cstdlib>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/testing/server.h"
#include "nlohmann/json.hpp"
#include "storage/hdfs/testing.h"
#include "storage/testing/conformance.h"
#include "storage/testing/program.h"

namespace muster::storage {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// tests/webhdfs_server.py.
class Cluster {
 public:
  explicit Cluster(const std::string& token = "")
      : program_(TestProgram::Start(
            {"/usr/bin/python3", "-B", MUSTER_TESTS "/webhdfs_server.py", "--token", token})),
        http_(*net::HttpClient::Create({})) {
    ForgetProxies();
    EXPECT_NE(program_, nullptr);
  }

  // The namenode.
  std::string authority() const {
    const std::vector<std::string> ports = absl::StrSplit(program_->line(), ' ');
    return absl::StrCat("127.0.0.1:", ports[0]);
  }
  Url At(const std::string& name) const { return {"hdfs", authority(), name}; }

  std::string Get(const std::string& target) {
    return http_->Do({.url = absl::StrCat("http://", authority(), target)})->body;
  }
  // Injects faults from now on.
  void Faults(const nlohmann::json& faults) {
    const std::string body = faults.dump();
    EXPECT_TRUE(http_
                    ->Do({.method = "POST",
                          .url = absl::StrCat("http://", authority(), "/control/faults"),
                          .body = body})
                    .ok());
  }
  // Returns the requests in order, such as "namenode GETFILESTATUS".
  std::vector<std::string> Log() {
    std::vector<std::string> lines;
    for (const auto& one : nlohmann::json::parse(Get("/control/log"))) {
      lines.push_back(
          absl::StrCat(one["where"].get<std::string>(), " ", one["op"].get<std::string>()));
      EXPECT_TRUE(one["where"] != "namenode" || one["bytes"] == 0) << one;
    }
    return lines;
  }

 private:
  const std::unique_ptr<TestProgram> program_;
  const std::unique_ptr<net::HttpClient> http_;
};

class HdfsPlace final : public Place {
 public:
  FileSystem& files() override { return *files_; }
  Url root() override { return cluster_.At("/below/here/"); }

 private:
  Cluster cluster_;
  const std::unique_ptr<FileSystem> files_ =
      *HdfsFileSystem::FromVariables([](const std::string&) { return ""; });
};

INSTANTIATE_TEST_SUITE_P(Hdfs, ConformanceTest,
                         testing::Values(Backend{
                             .name = "hdfs",
                             .make = [](std::string*) { return std::make_unique<HdfsPlace>(); },
                             .colons = false}));

class HdfsFaultTest : public testing::Test {
 protected:
  static std::string Pattern(size_t bytes) {
    std::string content(bytes, '\0');
    for (size_t i = 0; i < bytes; ++i) content[i] = static_cast<char>(i * 31 >> 4);
    return content;
  }
  std::string Content(const std::string& name) {
    const auto content = ReadWhole(*files_, cluster_.At(name));
    return content.ok() ? *content : absl::StrCat("!", content.status().message());
  }
  // Returns the real content of a folder, including temporary files.
  size_t Entries(const std::string& folder) {
    const auto listing =
        nlohmann::json::parse(cluster_.Get("/webhdfs/v1" + folder + "?op=LISTSTATUS"));
    return listing["FileStatuses"]["FileStatus"].size();
  }

  Cluster cluster_;
  const std::unique_ptr<HdfsFileSystem> files_ = FilesWith({.user = "alice"});
};

TEST_F(HdfsFaultTest, ALostChunkIsWrittenAgain) {
  const std::string content = Pattern(4500);
  for (const char* op : {"CREATE", "APPEND"}) {
    for (const nlohmann::json& how : std::vector<nlohmann::json>{
             {{"kind", "cut-body"}, {"bytes", 300}},
             {{"kind", "cut-body"}, {"bytes", 1000}},
             {{"kind", "cut"}},
             {{"kind", "cut-answer"}},
             {{"kind", "status"}, {"status", 503}},
             {{"kind", "exception"}, {"exception", "AlreadyBeingCreatedException"}},
             {{"kind", "stall"}}}) {
      nlohmann::json fault = how;
      // libcurl needs seconds to detect that a small body is stalled.
      const bool slow = how["kind"] == "stall";
      if (slow && op == std::string("CREATE")) continue;
      fault.update({{"where", "datanode"}, {"op", op}, {"times", slow ? 1 : 2}});
      cluster_.Faults(nlohmann::json::array({fault}));
      ASSERT_EQ(WriteWhole(*files_, cluster_.At("/d/a"), content), absl::OkStatus()) << fault;
      EXPECT_TRUE(Content("/d/a") == content) << fault;
      EXPECT_EQ(Entries("/d"), 1u);
    }
  }
  EXPECT_THAT(cluster_.Log(), Contains("namenode TRUNCATE"));
}

TEST_F(HdfsFaultTest, WaitsForTheLeaseOfAnEarlierWriter) {
  cluster_.Faults({{{"where", "datanode"}, {"op", "APPEND"}, {"kind", "cut-body"}, {"bytes", 10}},
                   {{"where", "namenode"},
                    {"op", "TRUNCATE"},
                    {"kind", "exception"},
                    {"exception", "AlreadyBeingCreatedException"},
                    {"times", 5}}});
  const std::string content = Pattern(2500);
  ASSERT_EQ(WriteWhole(*files_, cluster_.At("/a"), content), absl::OkStatus());
  EXPECT_TRUE(Content("/a") == content);
}

TEST_F(HdfsFaultTest, RetriesANamenodeThatIsNotReady) {
  const std::vector<std::string> ops = {"GETFILESTATUS", "LISTSTATUS_BATCH", "CREATE", "APPEND",
                                        "OPEN",          "RENAME",           "DELETE", "MKDIRS"};
  for (const nlohmann::json& how :
       std::vector<nlohmann::json>{{{"kind", "cut"}},
                                   {{"kind", "status"}, {"status", 503}},
                                   {{"kind", "exception"}, {"exception", "RetriableException"}},
                                   {{"kind", "exception"}, {"exception", "StandbyException"}}}) {
    nlohmann::json faults = nlohmann::json::array();
    for (const std::string& op : ops) {
      faults.push_back(how);
      faults.back().update({{"where", "namenode"}, {"op", op}, {"times", 2}});
    }
    cluster_.Faults(faults);
    ASSERT_EQ(WriteWhole(*files_, cluster_.At("/d/a"), Pattern(1500)), absl::OkStatus()) << how;
    EXPECT_TRUE(Content("/d/a") == Pattern(1500)) << how;
    EXPECT_EQ(files_->List(cluster_.At("/d/"), Depth::kAll)->size(), 1u) << how;
    EXPECT_EQ(files_->Rename(cluster_.At("/d/a"), cluster_.At("/e/b")), absl::OkStatus()) << how;
    EXPECT_EQ(files_->Delete(cluster_.At("/e/b")), absl::OkStatus()) << how;
  }
}

TEST_F(HdfsFaultTest, ReadingSurvivesFaultsOfADatanode) {
  const std::string content = Pattern(900);
  ASSERT_EQ(WriteWhole(*files_, cluster_.At("/a"), content), absl::OkStatus());
  for (const nlohmann::json& how :
       std::vector<nlohmann::json>{{{"kind", "cut-answer"}},
                                   {{"kind", "cut"}},
                                   {{"kind", "stall"}},
                                   {{"kind", "status"}, {"status", 500}},
                                   {{"kind", "exception"}, {"exception", "IOException"}}}) {
    nlohmann::json fault = how;
    fault.update({{"where", "datanode"}, {"op", "OPEN"}, {"times", 2}});
    cluster_.Faults(nlohmann::json::array({fault}));
    EXPECT_TRUE(Content("/a") == content) << fault;
  }
  cluster_.Faults({{{"where", "namenode"}, {"op", "GETFILESTATUS"}, {"kind", "stall"}}});
  EXPECT_TRUE(Content("/a") == content);
}

TEST_F(HdfsFaultTest, ALostResponseToTheRenameIsNoFailure) {
  const nlohmann::json lost = {{{"where", "namenode"}, {"op", "RENAME"}, {"kind", "cut-answer"}}};
  for (const IfExists if_exists : {IfExists::kFail, IfExists::kReplace}) {
    cluster_.Faults(lost);
    const std::string content = absl::StrCat("content ", static_cast<int>(if_exists));
    EXPECT_EQ(WriteWhole(*files_, cluster_.At("/d/a"), content, if_exists), absl::OkStatus());
    EXPECT_EQ(Content("/d/a"), content);
    ASSERT_EQ(files_->Delete(cluster_.At("/d/a")), absl::OkStatus());
  }
  // A file of another writer is not mistaken for ours.
  auto writer = *files_->OpenForWriting(cluster_.At("/d/a"), IfExists::kFail);
  ASSERT_EQ(writer->Append("mine"), absl::OkStatus());
  ASSERT_EQ(WriteWhole(*files_, cluster_.At("/d/a"), "hers"), absl::OkStatus());
  cluster_.Faults(lost);
  EXPECT_TRUE(absl::IsAlreadyExists(writer->Close()));
  EXPECT_EQ(Content("/d/a"), "hers");
  EXPECT_EQ(Entries("/d"), 1u);
}

TEST_F(HdfsFaultTest, AFailedOrDroppedWriterLeavesNothing) {
  for (const bool fails : {true, false}) {
    if (fails) {
      cluster_.Faults({{{"where", "datanode"},
                        {"op", "APPEND"},
                        {"skip", 1},
                        {"kind", "exception"},
                        {"exception", "DSQuotaExceededException"}}});
    }
    auto writer = *files_->OpenForWriting(cluster_.At("/d/a"), IfExists::kReplace);
    const absl::Status status = writer->Append(Pattern(3500));
    EXPECT_EQ(absl::IsResourceExhausted(status), fails) << status;
    if (fails) {
      EXPECT_EQ(writer->Close(), status);
      EXPECT_THAT(status.message(),
                  AllOf(HasSubstr("/d/a: "), HasSubstr("quota"), Not(HasSubstr(".muster-tmp"))));
    }
    writer.reset();
    EXPECT_EQ(Entries("/d"), 0u);
  }
}

TEST_F(HdfsFaultTest, ReplacingAFileWhileItIsReadIsAborted) {
  const Url url = cluster_.At("/a");
  for (const size_t bytes : {1000, 10}) {
    ASSERT_EQ(WriteWhole(*files_, url, Pattern(1000)), absl::OkStatus());
    const auto reader = *files_->OpenForReading(url);
    std::string buffer(100, '?');
    EXPECT_EQ(*reader->Read(0, absl::MakeSpan(buffer)), 100u);
    ASSERT_EQ(WriteWhole(*files_, url, std::string(bytes, 'x')), absl::OkStatus());
    EXPECT_TRUE(absl::IsAborted(reader->Read(500, absl::MakeSpan(buffer)).status())) << bytes;
  }
}

TEST_F(HdfsFaultTest, ServerErrorsBecomeReadableMessages) {
  struct Case {
    const char* exception;
    absl::StatusCode expected;
    const char* words;
  };
  const Url url = cluster_.At("/a b");
  for (const Case& one :
       {Case{"SafeModeException", absl::StatusCode::kUnavailable, "safe mode"},
        Case{"StandbyException", absl::StatusCode::kUnavailable, "MUSTER_HDFS_NAMENODES"},
        Case{"AccessControlException", absl::StatusCode::kPermissionDenied, "HADOOP_USER_NAME"},
        Case{"InvalidToken", absl::StatusCode::kUnauthenticated, "MUSTER_HDFS_TOKEN"},
        Case{"DSQuotaExceededException", absl::StatusCode::kResourceExhausted, "quota"},
        Case{"IOException", absl::StatusCode::kUnavailable, "IOException: told to"}}) {
    cluster_.Faults({{{"where", "namenode"},
                      {"kind", "exception"},
                      {"exception", one.exception},
                      {"times", 1000}}});
    for (const absl::Status& status :
         {files_->Stat(url).status(), files_->List(url, Depth::kAll).status(),
          files_->OpenForReading(url).status(), WriteWhole(*files_, url, "x"),
          files_->Delete(url)}) {
      EXPECT_EQ(status.code(), one.expected) << status;
      EXPECT_THAT(status.message(), AllOf(HasSubstr(one.words), HasSubstr("hdfs://127.0.0.1:")));
    }
  }
}

TEST_F(HdfsFaultTest, DeniedPermissions) {
  ASSERT_EQ(WriteWhole(*files_, cluster_.At("/alices/a"), "x"), absl::OkStatus());
  const auto bobs = FilesWith({.user = "bob"});
  const absl::Status status = WriteWhole(*bobs, cluster_.At("/alices/b"), "y");
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(status.message(), AllOf(HasSubstr("/alices/b: "), HasSubstr("user=bob")));
  EXPECT_TRUE(absl::IsPermissionDenied(bobs->Delete(cluster_.At("/alices/a"))));
  EXPECT_EQ(*ReadWhole(*bobs, cluster_.At("/alices/a")), "x");
}

TEST_F(HdfsFaultTest, FoldersInsteadOfFilesAndViceVersa) {
  ASSERT_EQ(WriteWhole(*files_, cluster_.At("/a"), "x"), absl::OkStatus());
  ASSERT_EQ(WriteWhole(*files_, cluster_.At("/d/e/f"), "x"), absl::OkStatus());
  EXPECT_TRUE(absl::IsFailedPrecondition(WriteWhole(*files_, cluster_.At("/a/b"), "y")));
  EXPECT_TRUE(absl::IsFailedPrecondition(WriteWhole(*files_, cluster_.At("/d"), "y")));
  EXPECT_TRUE(absl::IsFailedPrecondition(files_->Delete(cluster_.At("/d"))));
  EXPECT_TRUE(absl::IsFailedPrecondition(files_->OpenForReading(cluster_.At("/d")).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(files_->Rename(cluster_.At("/a"), cluster_.At("/d/e"))));
  EXPECT_TRUE(absl::IsNotFound(files_->Rename(cluster_.At("/d"), cluster_.At("/x"))));
  EXPECT_EQ(Content("/a"), "x");
  EXPECT_EQ(Content("/d/e/f"), "x");
}

TEST_F(HdfsFaultTest, NamesThatHdfsDoesNotAllow) {
  for (const char* name : {"/a/../b", "/./a", "/a//b", "/a\xff", "/a:b"}) {
    const Url url = cluster_.At(name);
    EXPECT_TRUE(absl::IsInvalidArgument(files_->Stat(url).status())) << name;
    EXPECT_TRUE(absl::IsInvalidArgument(WriteWhole(*files_, url, "x"))) << name;
  }
}

TEST_F(HdfsFaultTest, FailsOverToTheActiveNamenode) {
  net::TestServer standby([](net::Exchange& exchange) {
    exchange.Reply(403, R"({"RemoteException":{"exception":"StandbyException","message":"no"}})");
  });
  const std::string dead = absl::StrCat(
      "127.0.0.1:",
      absl::StripPrefix(net::TestServer([](net::Exchange&) {}).address(), "http://127.0.0.1:"));
  const std::string nodes =
      absl::StrCat("other=x:1 cluster=", dead, ",", absl::StripPrefix(standby.address(), "http://"),
                   ",", cluster_.authority());
  const std::map<std::string, std::string> values = {{"MUSTER_HDFS_NAMENODES", nodes},
                                                     {"HADOOP_USER_NAME", "alice"}};
  const auto files = FilesWith(*HdfsOptions::FromVariables([&](const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? "" : found->second;
  }));
  const Url url{"hdfs", "cluster", "/d/a"};
  ASSERT_EQ(WriteWhole(*files, url, Pattern(2500)), absl::OkStatus());
  EXPECT_TRUE(*ReadWhole(*files, url) == Pattern(2500));
  EXPECT_EQ(standby.requests(), 1);  // later requests start with the active one
  EXPECT_EQ(files->List({"hdfs", "cluster", "/d/"}, Depth::kAll)->at(0).url, url);
}

TEST_F(HdfsFaultTest, InvalidSettingsAreRejected) {
  for (const std::string variable : {"MUSTER_HDFS_HTTPS", "MUSTER_HDFS_NAMENODES"}) {
    const auto options = HdfsOptions::FromVariables(
        [&](const std::string& name) { return name == variable ? "what" : ""; });
    EXPECT_TRUE(absl::IsInvalidArgument(options.status()));
    EXPECT_THAT(options.status().message(), HasSubstr(variable));
  }
}

TEST(HdfsTokenTest, ATokenIsSentAndNeverShown) {
  Cluster cluster("hunter2");
  const Url url = cluster.At("/a");
  const base::TempDir folder;
  const std::string path = base::JoinPath(folder.path(), "token");
  const auto right = FilesWith({.user = "alice", .token = "hunter2"});
  const auto from_file = FilesWith({.token_file = path});
  EXPECT_TRUE(absl::IsFailedPrecondition(from_file->Stat(url).status()));
  ASSERT_TRUE(base::ReplaceFile(path, "hunter3\n").ok());
  EXPECT_TRUE(absl::IsUnauthenticated(from_file->Stat(url).status()));
  ASSERT_TRUE(base::ReplaceFile(path, "hunter2\n").ok());
  EXPECT_EQ(WriteWhole(*right, url, "x"), absl::OkStatus());
  EXPECT_EQ(*ReadWhole(*from_file, url), "x");
  const absl::Status none = FilesWith({.user = "alice"})->Stat(url).status();
  EXPECT_TRUE(absl::IsUnauthenticated(none)) << none;
  EXPECT_THAT(none.message(), HasSubstr("MUSTER_HDFS_TOKEN"));
  const absl::Status wrong = FilesWith({.token = "hunter4"})->Stat(url).status();
  EXPECT_TRUE(absl::IsUnauthenticated(wrong)) << wrong;
  EXPECT_THAT(wrong.message(), Not(HasSubstr("hunter")));
}

}  // namespace
}  // namespace muster::storage
